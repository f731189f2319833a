// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/flip/model_score.h"
#include "fuzz/flip/random.h"
#include "softfloat/result.h"

/// The search for texts of a model on which two arms choose different tokens: islands of a few
/// prompts each, as for numbers (search.h). What it finds depends on model, arms, prompts, seed,
/// islands and runs alone.
namespace kvsim::fuzz {

using Prompt = std::vector<TokenId>;

/// Runs of an island between two exchanges.
inline constexpr std::int64_t model_epoch_runs = 4;
/// Prompts of an island at most.
inline constexpr std::size_t model_island_members = 4;

struct ScoredPrompt {
  Prompt ids;
  double fitness = 0;
};

struct ModelIsland {
  std::int64_t runs = 0;
  std::uint64_t position = 0;  ///< of its random numbers
  std::vector<ScoredPrompt> members;
  std::optional<ModelFlip> best;  ///< the flip with the largest ratio
  std::int64_t best_run = 0;
  std::int64_t plain_runs = 0;  ///< of prompts as they were given
  std::int64_t plain_finds = 0;
  double plain_ratio = 0;  ///< the best of those
};

struct ModelSearchOptions {
  std::uint64_t seed = 0;
  std::int64_t islands = 8;
  int threads = 1;  ///< changes time, never a result
};

/// A changed copy of a prompt: tokens replaced by others of the pool, places exchanged, spans left
/// out, doubled or taken from another prompt. Has 1 to `longest` tokens.
[[nodiscard]] Prompt mutated(const Prompt& parent, const std::vector<Prompt>& pool,
                             std::int64_t longest, Random& random);

class ModelSearch {
 public:
  /// The scorer must outlive the search. `prompts`: at least one, none of them empty.
  ModelSearch(const ModelScorer& scorer, std::vector<Prompt> prompts,
              const ModelSearchOptions& options);

  /// Runs until `total` runs were made in all; ends early, after a whole epoch, once `go_on` says
  /// no. Errors: those of the engine.
  Result<bool> run(std::int64_t total, const std::function<bool(std::int64_t)>& go_on);

  [[nodiscard]] std::int64_t runs() const;
  [[nodiscard]] const std::vector<ModelIsland>& islands() const { return islands_; }
  /// The best flip of all islands; of equal ones that of the first island.
  [[nodiscard]] const ModelFlip* best() const;

  /// The state as text, and back. Errors (file) name the line; a state of another search is one.
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] Result<bool> read_state(std::string_view text);

 private:
  [[nodiscard]] std::string head() const;
  Result<bool> run_island(std::size_t number, std::int64_t runs);

  const ModelScorer& scorer_;
  std::vector<Prompt> prompts_;
  std::int64_t longest_ = 1;
  ModelSearchOptions options_;
  std::vector<ModelIsland> islands_;
};

}  // namespace kvsim::fuzz
