// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "gpu/probe/prober.h"

namespace kvsim::gpu {
namespace {

/// Puts a number at the bottom of the output's range and a far smaller one beside it. All other
/// terms are zeros: where they take part in the alignment, the smaller one is cut off.
class TinyProbe {
 public:
  TinyProbe(const Prober& prober, int base, bool negative)
      : prober_(&prober), base_(base), negative_(negative) {
    const UnitShape& shape = prober.shape();
    const auto& group = prober.group();
    second_ = prober.quarter(2);
    if (shape.scale_block == 0) return;
    other_scale_ = second_ / shape.scale_block != group[0] / shape.scale_block;
    // 4-bit numbers reach so little that the base is made of 16 of them.
    if (!other_scale_ && group.size() >= 32) copies_ = 4;
    second_ = other_scale_ ? second_ : group.back();
  }

  /// The first number of places that operands exist for.
  [[nodiscard]] int first() const { return copies_ + 1; }
  /// The exponent with which the base takes part in the alignment.
  [[nodiscard]] int aligned() const { return base_ - copies_; }

  /// The smaller number lies `places` below the base.
  bool fill(RowBuilder& builder, int places) const {
    const UnitShape& shape = prober_->shape();
    const ProbeRange& range = prober_->range();
    const int first = prober_->group()[0];
    if (shape.scale_block == 0) {
      return base_ >= range.smallest_normal && builder.product(first, base_) &&
             builder.product(second_, base_ - places, negative_);
    }
    if (other_scale_) {
      return builder.scale(first, base_) && builder.product(first, 0) &&
             builder.scale(second_, base_ - places) && builder.product(second_, 0, negative_);
    }
    if (!builder.scale(first, aligned() - range.largest)) return false;
    for (std::size_t i = 0; i < std::size_t{1} << copies_; ++i) {
      if (!builder.product(prober_->group()[i], range.largest)) return false;
    }
    return builder.product(second_, range.largest + copies_ - places, negative_);
  }

 private:
  const Prober* prober_;
  int base_;
  bool negative_;
  int second_ = 0;
  int copies_ = 0;  ///< the base is a sum of 2^copies products
  bool other_scale_ = false;
};

/// The number of fraction bits that was seen, if one was: of sums with c, where both show.
std::optional<int> fraction_bits(const Prober& prober) {
  for (const auto name : {property::addend_bits, property::fraction_bits}) {
    const Seen seen = prober.found(name);
    if (seen.kind == Seen::Kind::number) return seen.number;
  }
  return std::nullopt;
}

}  // namespace

void find_zero_exponent(Prober& prober) {
  if (!prober.fused() || prober.group().size() < 4) return;
  const Seen precision = prober.found(property::precision);
  const bool truncates = prober.found(property::rounding).word == "toward zero";
  const auto fraction = fraction_bits(prober);
  if (!fraction || precision.kind != Seen::Kind::number) return;
  // The smallest number of the output: less than it is cut off, or rounded from half of it on.
  const int smallest =
      prober.range().output_smallest + prober.shape().output.precision - precision.number;
  const int base = truncates ? smallest : smallest - 1;
  const TinyProbe probe(prober, base, truncates);
  const auto values = prober.values({.first = probe.first()}, [&](RowBuilder& builder, int places) {
    return probe.fill(builder, places);
  });
  if (values.empty()) return prober.add(property::zero_exponent, {});
  const double without = truncates ? std::ldexp(1.0, smallest) : 0.0;
  const LastVisible last = last_visible(values, [&](double value) { return value != without; });
  const int places = last.steps < 0 ? 0 : last.steps + probe.first();
  const int seen = base - places + *fraction;
  using Kind = Seen::Kind;
  if (!last.orderly) {
    prober.add(property::zero_exponent, seen_word("not by one limit"));
  } else if (last.all || seen <= probe.aligned()) {
    prober.add(property::zero_exponent, {.kind = Kind::at_most, .number = seen});
  } else if (last.steps < 0) {
    prober.add(property::zero_exponent, {.kind = Kind::at_least, .number = seen});
  } else {
    prober.add(property::zero_exponent, seen_number(seen));
  }
}

}  // namespace kvsim::gpu
