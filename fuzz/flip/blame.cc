// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/blame.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fuzz/flip/delta_debugging.h"
#include "fuzz/flip/reference.h"

namespace kvsim::fuzz {
namespace {

// What is left of double-double arithmetic's own errors, relative to the error that is looked into.
constexpr double noise = 0x1p-60;

/// What one model says of the path.
class Inquiry {
 public:
  Inquiry(const RoundingModel& model, const FlipScore& score, std::size_t path)
      : model_(model), roundings_(model.roundings()), exact_(roundings_.size()) {
    right_ = score.exact >= 0 ? 0 : 1;
    noise_ = noise * std::abs(score.paths[path].difference - score.exact);
    computed_ = model_.difference(exact_);
  }

  Result<Blame> run(const FlipScore& score, std::size_t path) {
    const double error = score.paths[path].difference - score.exact;
    const std::vector<char> all(exact_.size(), 1);
    const double computed_off = (computed_ - score.paths[path].difference).high;
    const double exact_off = (model_.difference(all) - score.exact).high;
    if (!(std::abs(computed_off) <= 0x1p-40 * std::abs(error)) ||
        !(std::abs(exact_off) <= 0x1p-40 * std::abs(error) + score.reference_error)) {
      return Error{ErrorKind::cannot_tell, "the roundings do not add up to what the path computes"};
    }
    Blame blame;
    blame.path = path;
    blame.error = error;
    for (std::size_t i = 0; i < roundings_.size(); ++i) {
      const DoubleDouble without = difference_with({i});
      roundings_[i].effect = (computed_ - without).high;
      blame.erring += roundings_[i].error_ulp != 0 ? 1 : 0;
      blame.alone += is_right(without) ? 1 : 0;
    }
    for (const std::size_t i : decisive(error)) roundings_[i].decisive = true;
    blame.roundings = std::move(roundings_);
    return blame;
  }

 private:
  [[nodiscard]] DoubleDouble difference_with(const std::vector<std::size_t>& chosen) {
    for (const std::size_t i : chosen) exact_[i] = 1;
    const DoubleDouble result = model_.difference(exact_);
    for (const std::size_t i : chosen) exact_[i] = 0;
    return result;
  }
  /// Equal logits are won by token 0.
  [[nodiscard]] bool is_right(DoubleDouble difference) const {
    return (difference.high >= -noise_ ? 0 : 1) == right_;
  }

  /// The roundings with the largest effects, as many as undo the flip, without those that can be
  /// left out.
  std::vector<std::size_t> decisive(double error) {
    std::vector<std::size_t> order(roundings_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const double side = error < 0 ? -1 : 1;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      const double left = side * roundings_[a].effect;
      const double right = side * roundings_[b].effect;
      return left != right ? left > right : a < b;
    });
    const auto passes = [&](const std::vector<std::size_t>& chosen) {
      return is_right(difference_with(chosen));
    };
    std::vector<std::size_t> chosen;
    chosen.reserve(order.size());
    for (const std::size_t i : order) {
      chosen.push_back(i);
      if (passes(chosen)) break;
    }
    return minimal_subset(std::move(chosen), passes);
  }

  const RoundingModel& model_;
  std::vector<Rounding> roundings_;
  std::vector<char> exact_;
  DoubleDouble computed_;
  int right_ = 0;
  double noise_ = 0;
};

}  // namespace

Result<Blame> blame(const FlipScorer& scorer, const FlipCase& flip_case) {
  const FlipScore score = scorer.score(flip_case);
  if (!score.flips()) return Error{ErrorKind::cannot_tell, "there is no flip"};
  const int right = score.exact >= 0 ? 0 : 1;
  const std::size_t path = score.paths[path_on].token() == right ? path_off : path_on;
  const auto model = flip_case.shape.kind == CaseKind::sum
                         ? sum_roundings(flip_case, path)
                         : attention_roundings(scorer, flip_case, path);
  if (!model) return model.error();
  return Inquiry(**model, score, path).run(score, path);
}

}  // namespace kvsim::fuzz
