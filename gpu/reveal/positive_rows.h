// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/reveal/positive_operator.h"
#include "gpu/reveal/positive_tree.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Elements of a row by the size of their terms (e^(x − max x), or x²) beside that of the large
/// one, which is 1.
struct AbsorptionElements {
  float large = 0;
  float tiny = 0;    ///< about ¾ of half an ulp: 0.75 · 2^−24. Two of them are no longer lost.
  float unit = 0;    ///< about one ulp: 2^−23
  float filler = 0;  ///< of no account, and not zero: below 2^−42
};

/// Rows of an operator in which terms about half an ulp of the largest are lost in it or not, and
/// what the results say of it: whether the sum is that of the large term alone or the next number.
///
/// A binary32 softmax, and log-softmax, tell it at the large element itself, 1 ÷ sum or −log sum.
/// A 16-bit softmax tells it at fillers: e of them is chosen so close to half way between two
/// 16-bit numbers that e ÷ sum falls to one side or the other. An RMS norm tells it at the large
/// element with an ε chosen so that √ and rounding do not hide the last bit of the sum.
class AbsorptionRows {
 public:
  /// Finds elements and ε with which results of `reveal_operator`, which must outlive the object,
  /// tell it; rows of 3 elements or more. Errors (cannot_tell): there are none, as in short rows of
  /// a 16-bit softmax, or sums that are narrower than binary32.
  [[nodiscard]] static Result<AbsorptionRows> make(PositiveOperator& reveal_operator);

  /// Whether what is less than half an ulp is lost at all; false: sums keep more than 24 bits.
  [[nodiscard]] bool absorbs() const { return absorbs_; }
  [[nodiscard]] const AbsorptionElements& elements() const { return elements_; }
  /// What calls with these rows take as ε.
  [[nodiscard]] std::optional<double> epsilon() const { return epsilon_; }

  /// One row for each probe. Errors (cannot_tell): a result that is neither of the two.
  [[nodiscard]] Result<std::vector<bool>> answer(const std::vector<AbsorptionProbe>& probes);

  /// Rows [count][terms] with one large term and a few of less than half an ulp at random places,
  /// for a check; `seed` and `number` make them.
  [[nodiscard]] std::vector<float> random_rows(std::int64_t count, std::uint64_t seed,
                                               std::uint64_t number) const;

 private:
  explicit AbsorptionRows(PositiveOperator& of) : operator_(&of) {}

  Result<bool> calibrate_softmax();
  Result<bool> calibrate_fillers();
  Result<bool> calibrate_norm();
  /// Reads sums of the large term alone, with a tiny one and with a unit at the large element.
  Result<bool> compare();
  [[nodiscard]] Error unreadable(const char* why) const;

  PositiveOperator* operator_;
  AbsorptionElements elements_;
  std::optional<double> epsilon_;
  bool absorbs_ = true;
  std::vector<std::int64_t> columns_;  // where a result is read; empty: at the large element
  std::vector<float> low_;             // of those columns: the large term alone
  std::vector<float> high_;            // the next sum
};

}  // namespace kvsim::gpu
