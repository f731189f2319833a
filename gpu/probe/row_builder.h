// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>

#include "gpu/probe/unit_under_test.h"

namespace kvsim::gpu {

/// The code of a number, if the format has it exactly.
[[nodiscard]] std::optional<softfloat::Bits> exact_code(const softfloat::Format& format,
                                                        double value);

/// The exponents of numbers and products that an instruction can be given or can return.
struct ProbeRange {
  int smallest_normal = 0;  ///< of products of two normal numbers
  int smallest = 0;         ///< of products, of subnormal numbers too
  int largest = 0;          ///< of products of two powers of two
  int output_smallest = 0;  ///< subnormal
  int output_normal = 0;
  int output_largest = 0;
};
[[nodiscard]] ProbeRange range_of(const UnitShape& shape);

/// Makes one row of operands: all zeros (scales 1) at first.
class RowBuilder {
 public:
  explicit RowBuilder(const UnitShape& shape);

  /// a[k]·b[k] = ±2^exponent, of normal numbers where there are such. False: out of range.
  bool product(int k, int exponent, bool negative = false);
  /// a[k] and b[k]. False: no such numbers.
  bool factors(int k, double a, double b);
  /// c = ±2^exponent, or any number. False: no such number.
  bool addend(double value);
  bool addend_power(int exponent, bool negative = false);
  /// The scales of the block of element k multiply to 2^exponent. False: out of range.
  bool scale(int k, int exponent);
  /// Codes as they are.
  void codes(int k, softfloat::Bits a, softfloat::Bits b);
  void addend_code(softfloat::Bits c) { row_.c = c; }

  [[nodiscard]] const ProbeRow& row() const { return row_; }

 private:
  UnitShape shape_;
  ProbeRow row_;
};

}  // namespace kvsim::gpu
