// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/flip/attention_errors.h"
#include "sim/attention_shape.h"
#include "sim/ulp.h"
#include "softfloat/format.h"

namespace kvsim::fuzz {

/// Takes the errors of one head's steps, and appends its roundings.
class StepTaker {
 public:
  StepTaker(const HeadInput& input, std::vector<Rounding>& roundings);

  /// Where the next steps are: their text, and the number of the block.
  void go_to(std::string place, std::int64_t block) {
    place_ = std::move(place);
    block_ = block;
  }
  /// The same within the block: "query head 0, keys 0..127".
  void go_to_keys(std::int64_t first, std::int64_t end);

  /// Errors of `count` results: each one computed, less what it is exactly.
  template <class Computed, class Exact>
  StepErrors each(std::string step, const softfloat::Format& format, std::size_t count,
                  const Computed& computed, const Exact& exact) {
    StepErrors result;
    result.rounding = roundings_.size();
    result.errors.reserve(count);
    Rounding rounding{.place = place_, .step = std::move(step), .group = head_, .number = block_};
    for (std::size_t i = 0; i < count; ++i) {
      const DoubleDouble value(computed(i));
      const DoubleDouble error = value - exact(i);
      const double ulps = std::ldexp(error.high, -ulp_exponent(format, value));
      if (std::abs(ulps) > std::abs(rounding.error_ulp)) rounding.error_ulp = ulps;
      result.errors.push_back(error);
    }
    roundings_.push_back(std::move(rounding));
    return result;
  }

  /// The same of head_dim results, along the difference of the tokens' rows.
  template <class Computed, class Exact>
  StepErrors projected(std::string step, const softfloat::Format& format, const Computed& computed,
                       const Exact& exact) {
    StepErrors result = each(std::move(step), format, first_row_.size(), computed, exact);
    DoubleDouble sum;
    for (std::size_t d = 0; d < result.errors.size(); ++d) {
      sum = sum + result.errors[d] * static_cast<double>(first_row_[d]);
      sum = sum - result.errors[d] * static_cast<double>(second_row_[d]);
    }
    result.errors = {sum};
    return result;
  }

  /// q·k of one key.
  [[nodiscard]] DoubleDouble score(std::int64_t key) const;
  /// A key's value along the difference of the rows.
  [[nodiscard]] DoubleDouble along(std::int64_t key) const;
  /// A key's value.
  [[nodiscard]] std::span<const float> value(std::int64_t key) const;

 private:
  std::vector<Rounding>& roundings_;
  std::int64_t head_;
  std::span<const float> query_, keys_, values_;   ///< of the head
  std::span<const float> first_row_, second_row_;  ///< of the tokens
  std::string place_;
  std::int64_t block_ = 0;
};

/// P·V of one block.
struct BlockProduct {
  const BlockRecord& record;
  std::span<const float> before;  ///< the output that it adds to
  std::string_view order;         ///< text of StorageSums::values
  Product product = Product::rounded;
  softfloat::Format operand;
  softfloat::Format output;  ///< where the order has no format of its own
};

/// The errors of P·V, one instruction of the matrix unit after the other where that gives the
/// kernel's numbers, of the whole block otherwise.
[[nodiscard]] std::vector<StepErrors> product_errors(StepTaker& taker, const BlockProduct& product);

}  // namespace kvsim::fuzz
