// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sim/order.h"
#include "sim/sum.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/exact_sum.h"
#include "softfloat/format.h"
#include "softfloat/rounding.h"

namespace kvsim {

/// The Ops of walk() (sim/order_walk.h) on softfloat, and the arithmetic of evaluate_tree(): sums
/// of products a[i] × b[i] with flags. Keeps references to everything it is made of.
class SumOps {
 public:
  /// A partial sum: a code of the accumulator format, or (Product::exact only) one product that is
  /// not rounded yet.
  struct Value {
    softfloat::Bits bits = 0;
    std::int64_t term = -1;  ///< ≥ 0: the exact product of this term
  };

  /// Requires check_formats(order, input, accumulator).
  SumOps(const Order& order, Product product, const softfloat::Format& input,
         const softfloat::Format& accumulator, std::span<const softfloat::Bits> a,
         std::span<const softfloat::Bits> b, const softfloat::Mode& mode);

  [[nodiscard]] Value zero() const { return {}; }
  Value first(std::int64_t i);
  Value add_term(const Value& total, std::int64_t i);
  Value add(const Value& left, const Value& right);
  Value exact(const OrderRange& range, bool from_zero);
  Value unit(const OrderRange& range, const OrderItem& item);
  Value round_to(const Value& total, const softfloat::Format& format);

  /// A number of another format that the accumulator holds.
  Value from(const softfloat::Format& format, softfloat::Bits code);
  /// The sum as a code, with the flags of everything so far.
  softfloat::Rounded finish(const Value& total);

 private:
  [[nodiscard]] softfloat::Bits a(std::int64_t i) const { return a_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] softfloat::Bits b(std::int64_t i) const { return b_[static_cast<std::size_t>(i)]; }

  Value note(const softfloat::Rounded& rounded);
  Value not_a_number(bool invalid);
  Value rounded_product(std::int64_t i);
  Value multiply_add(const Value& total, std::int64_t i);
  bool accumulate(softfloat::ExactAccumulator& sum, std::int64_t i) const;
  Value finish(const softfloat::ExactAccumulator& sum, bool invalid);
  [[nodiscard]] softfloat::Bits read(softfloat::Bits code) const;

  Product product_;
  const softfloat::Format& input_;
  const softfloat::Format& accumulator_;
  std::span<const softfloat::Bits> a_;
  std::span<const softfloat::Bits> b_;
  const softfloat::Mode& mode_;
  std::optional<MatrixUnit> unit_;
  softfloat::Flags flags_;
};

}  // namespace kvsim
