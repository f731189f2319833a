// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "cli/output.h"
#include "cli/run/run_request.h"
#include "run/run_results.h"

/// The tables of `kvsim run`. Where `prompts` are many, those for people show the first ones only;
/// the first of each list of rows says how many there are.
namespace kvsim::run_tables {

/// One arm against the first one, over all prompts.
struct PairView {
  std::size_t arm = 1;
  std::vector<PairSummary> prompts;  ///< as many as results
  PairTotal total;
};
[[nodiscard]] std::vector<PairView> pair_views(const std::vector<PromptResult>& prompts);

/// Label of an arm.
[[nodiscard]] const std::string& label(const RunRequest& request, std::size_t arm);

[[nodiscard]] Table settings(const RunRequest& request, const RunSummary& summary);
[[nodiscard]] Table arms(const RunRequest& request, const RunSummary& summary);
/// What each arm wrote.
[[nodiscard]] Table texts(const RunRequest& request, const std::vector<PromptResult>& prompts);
/// A row for each prompt.
[[nodiscard]] Table differences(const RunRequest& request, const std::vector<PromptResult>& prompts,
                                const PairView& pair);
/// A row for each arm but the first.
[[nodiscard]] Table totals(const RunRequest& request, const std::vector<PairView>& pairs);
/// Tokens around the place where a prompt's arms part.
[[nodiscard]] Table around_flip(const RunRequest& request, const PromptResult& prompt,
                                const PairView& pair, const ChosenOtherwise& flip);

/// One sentence that says what the tables mean.
/// The name of what the first arm and that one can differ by: EngineArm::difference() where they
/// have one dispatch; otherwise empty.
[[nodiscard]] std::string_view difference_name(const RunRequest& request, std::size_t arm);
[[nodiscard]] std::string meaning(const RunRequest& request, const std::vector<PairView>& pairs);

/// At most so many rows, with a note that says how many were left out.
[[nodiscard]] Table shortened(Table table, std::size_t rows);

}  // namespace kvsim::run_tables
