// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "experiments/study.h"

/// Claims of arXiv 2604.15409 and what studies say of them.
namespace kvsim::experiments {

enum class Verdict {
  reproduced,
  not_reproduced,
  explained,    ///< seen, and something else than what is claimed brings it about
  cannot_tell,  ///< too few texts that part, another model, numbers that were not measured
};

[[nodiscard]] std::string_view verdict_text(Verdict verdict);

/// A verdict and what was measured, one sentence with its numbers and denominators.
struct Judgement {
  Verdict verdict = Verdict::cannot_tell;
  std::string measured;
};

/// A row of the table of claims.
struct ClaimRow {
  std::string_view claim;                  ///< in our words
  std::string_view reported;               ///< the figures of the paper
  std::string_view study;                  ///< what answers it
  Judgement (*judge)(const Json& result);  ///< of the study's StudySummary::result
};

[[nodiscard]] std::span<const ClaimRow> claim_rows();

/// The claims whose study has a result, as a table, and as JSON an object for each: claim,
/// reported, study, verdict, measured.
struct JudgedClaims {
  SummaryTable table;
  Json result;
};
/// `result_of` gives the result of a study by its name, or null.
[[nodiscard]] JudgedClaims judge_claims(
    const std::function<const Json*(std::string_view study)>& result_of);

/// The number at a JSON pointer ("/greedy/parted"), also where it is the value of an estimate;
/// nothing where it is not there or is null.
[[nodiscard]] std::optional<double> number_at(const Json& result, const std::string& pointer);

}  // namespace kvsim::experiments
