// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cstddef>

#include "fuzz/flip/attention_errors.h"
#include "sim/exp.h"
#include "sim/exp_constants.h"

namespace kvsim::fuzz {
namespace {

/// The computation with the errors of what is not exact.
class Replay {
 public:
  Replay(const HeadErrors& head, const std::vector<char>& exact) : head_(head), exact_(exact) {}

  DoubleDouble run() {
    const bool merges = !head_.of_merge.errors.empty();
    DoubleDouble total;
    DoubleDouble weights;
    const DoubleDouble common = head_.splits[0].blocks.back().maximum;
    for (const SplitErrors& split : head_.splits) {
      const State state = head_.divides_first ? divided(split.blocks.front()) : walk(split);
      const DoubleDouble output = (head_.divides_first ? state.output : state.output / state.sum) +
                                  error(split.of_division);
      if (!merges) return output + error(head_.of_output);
      const DoubleDouble gap = split.blocks.back().maximum - common;
      const DoubleDouble weight =
          state.sum * exp_reference(gap * head_.scale + error(split.of_log_sum));
      total = total + weight * output;
      weights = weights + weight;
    }
    return total / weights + error(head_.of_merge) + error(head_.of_output);
  }

 private:
  struct State {
    DoubleDouble output;  ///< along the difference of the rows
    DoubleDouble sum;
  };

  /// An error of a step; 0 where it is exact, or not made.
  [[nodiscard]] DoubleDouble error(const StepErrors& step, std::size_t i = 0) const {
    if (step.errors.empty() || exact_[step.rounding] != 0) return 0.0;
    return step.errors[i];
  }

  /// The exponential of a key.
  [[nodiscard]] DoubleDouble exponential(const BlockErrors& block, std::size_t j) const {
    DoubleDouble s = block.scores[j] + error(block.of_scaled_operands, j) +
                     error(block.of_scores, j) + error(block.of_stored_scores, j);
    s = s * head_.score_scale + error(block.of_scaled_scores, j);
    const DoubleDouble x = (s - block.maximum) * head_.scale;
    const DoubleDouble base = exp_constants::ln2;  // where exponents are to base 2
    const DoubleDouble exponent = head_.natural ? x + error(block.of_exponents, j)
                                                : (x / base + error(block.of_exponents, j)) * base;
    return exp_reference(exponent) + error(block.of_exponentials, j);
  }

  State walk(const SplitErrors& split) {
    State state;
    for (std::size_t b = 0; b < split.blocks.size(); ++b) {
      const BlockErrors& block = split.blocks[b];
      if (b > 0) {
        const DoubleDouble r = exp_reference((block.maximum_before - block.maximum) * head_.scale) +
                               error(block.of_rescaling);
        state.output = state.output * r + error(block.of_rescaling, 1);
        state.sum = state.sum * r;
      }
      for (std::size_t j = 0; j < block.scores.size(); ++j) {
        const DoubleDouble p = exponential(block, j);
        const DoubleDouble stored = p + error(block.of_probabilities, j);
        state.sum = state.sum + (head_.sums_stored ? stored : p);
        state.output = state.output + stored * head_.along[at(block.first_key) + j];
      }
      state.sum = state.sum + error(block.of_row_sum);
      for (const StepErrors& step : block.of_values) state.output = state.output + error(step);
    }
    return state;
  }

  /// One block whose probabilities are divided by the row sum before they multiply V.
  State divided(const BlockErrors& block) {
    std::vector<DoubleDouble> p(block.scores.size());
    State state;
    for (std::size_t j = 0; j < p.size(); ++j) {
      p[j] = exponential(block, j);
      state.sum = state.sum + p[j];
    }
    state.sum = state.sum + error(block.of_row_sum);
    for (std::size_t j = 0; j < p.size(); ++j) {
      const DoubleDouble stored = p[j] / state.sum + error(block.of_probabilities, j);
      state.output = state.output + stored * head_.along[at(block.first_key) + j];
    }
    for (const StepErrors& step : block.of_values) state.output = state.output + error(step);
    return state;
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  const HeadErrors& head_;
  const std::vector<char>& exact_;
};

}  // namespace

DoubleDouble HeadErrors::share(const std::vector<char>& exact) const {
  return Replay(*this, exact).run();
}

}  // namespace kvsim::fuzz
