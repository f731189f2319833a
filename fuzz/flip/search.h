// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/mutate.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/score.h"
#include "softfloat/result.h"

/// The built-in search for flips: islands of a few cases each, which evolve on their own and hand
/// their best case on now and then. What it finds depends on shape, seed, islands and runs alone.
namespace kvsim::fuzz {

/// Runs of an island between two exchanges: 256, fewer where cases are large.
[[nodiscard]] std::int64_t epoch_runs(const CaseShape& shape);

/// What was found, and at which run of its island.
struct Find {
  ScoredCase scored;
  std::int64_t run = 0;
};

/// Members of an island, best last not required; at most this many.
inline constexpr std::size_t island_members = 6;

/// One island: what a state file holds of it.
struct Island {
  std::int64_t runs = 0;
  std::uint64_t position = 0;  ///< of its random numbers
  std::vector<ScoredCase> members;
  std::optional<Find> best;  ///< whose claim has the largest value
};

/// Plain random search on the same shape: the yardstick.
struct Baseline {
  std::int64_t runs = 0;
  std::int64_t finds = 0;  ///< cases of which the target's claim holds
  double best_value = 0;   ///< largest value of such a claim; 0: none found
};

struct SearchOptions {
  std::uint64_t seed = 0;
  std::int64_t islands = 8;
  int threads = 1;  ///< changes time, never a result
  ValueRanges ranges = default_ranges();
};

/// A search that can be run on, stored and read back.
class FlipSearch {
 public:
  /// The scorer must outlive the search.
  FlipSearch(const FlipScorer& scorer, const SearchOptions& options);

  /// Runs until `total` runs were made in all, those of a state that was read back included. An
  /// island has total ÷ islands of them, the first ones one more. The baseline makes as many. Ends
  /// early, after a whole epoch, once `go_on` (called with the runs made so far, between epochs,
  /// from one thread) says no.
  void run(std::int64_t total, const std::function<bool(std::int64_t)>& go_on);

  [[nodiscard]] std::int64_t runs() const;
  [[nodiscard]] const Baseline& baseline() const { return baseline_; }
  /// The best find of all islands; of equal ones that of the first island.
  [[nodiscard]] const Find* best() const;
  /// The best find that is confirmed, with what MPFR says; nothing where there is none.
  struct Confirmed {
    Find find;
    Confirmation confirmation;
    Claim claim;  ///< the confirmed one
  };
  [[nodiscard]] std::optional<Confirmed> confirmed() const;

  /// The state as text, and back. Errors (file) name the line; a state of another shape, seed or
  /// number of islands is an error.
  [[nodiscard]] std::string state_text() const;
  [[nodiscard]] Result<bool> read_state(std::string_view text);

 private:
  [[nodiscard]] std::array<std::int64_t, 2 * case_tensors + 1> range_bits() const;
  [[nodiscard]] ScoredCase scored(FlipCase flip_case) const;
  void run_island(std::size_t number, std::int64_t runs);
  void run_baseline(std::int64_t total);
  void note(Island& island, const ScoredCase& candidate) const;

  const FlipScorer& scorer_;
  SearchOptions options_;
  std::int64_t epoch_;
  ValueFitter fitter_;
  Mutator mutator_;
  std::vector<Island> islands_;
  Baseline baseline_;
};

}  // namespace kvsim::fuzz
