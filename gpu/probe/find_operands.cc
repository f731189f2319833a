// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>

#include "gpu/probe/prober.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// A product whose exact value is one bit longer than two factors, less its leading bits.
Seen product_rounding(Prober& prober) {
  const int precision = prober.shape().input.precision;
  const double factor = 1 + std::ldexp(1.0, 1 - precision);
  const double most = 1 + std::ldexp(1.0, 2 - precision);
  const auto& group = prober.group();
  const auto left = prober.value([&](RowBuilder& builder) {
    return group.size() >= 2 && builder.factors(group[0], -most, 1) &&
           builder.factors(group[1], factor, factor);
  });
  if (!left) return {};
  return seen_word(*left == std::ldexp(1.0, 2 - 2 * precision) ? "exact" : "not exact");
}

/// What becomes of operand bits that the unit does not multiply.
Seen operand_rounding(Prober& prober) {
  const UnitShape& shape = prober.shape();
  const int precision = shape.input.precision;
  const auto times_one = [&](double a) {
    return prober.value([&](RowBuilder& builder) {
      const auto code = exact_code(shape.operand, a);
      const auto one = exact_code(shape.operand, 1);
      if (!code || !one) return false;
      builder.codes(prober.group()[0], *code, *one);
      return true;
    });
  };
  const double half = std::ldexp(1.0, -precision);
  const auto tie = times_one(1 + half);
  const auto above = times_one(1 + half + half / 2);
  const auto below = times_one(1 + half / 2);
  if (!tie || !above || !below) return {};
  if (*tie == 1 && *above == 1) return seen_word("dropped");
  if (*below != 1) return seen_word("kept, or rounded away");
  return seen_word(*tie == 1 ? "rounded, ties to even or zero" : "rounded, ties away");
}

/// The smallest number of the input format, times the largest power of two.
struct SubnormalProduct {
  double smallest = 0;
  double large = 0;
  int value = 0;    ///< exponent of the product
  int aligned = 0;  ///< its exponent if the small factor counts with the smallest normal one
};

SubnormalProduct subnormal_product(const UnitShape& shape) {
  const softfloat::Format& input = shape.input;
  const int smallest = input.emin() - input.trailing_bits();
  return {std::ldexp(1.0, smallest), std::ldexp(1.0, input.emax()), smallest + input.emax(),
          input.emin() + input.emax()};
}

/// Two such products cancel; a third one is left where the alignment did not cut it off.
Seen subnormal_alignment(Prober& prober, const SubnormalProduct& tiny, int fraction_bits) {
  const int lowest = std::max(prober.range().smallest, prober.range().output_smallest);
  const auto left = prober.values(
      {.first = tiny.value - 1, .step = -1, .count = std::max(tiny.value - lowest, 0)},
      [&](RowBuilder& builder, int exponent) {
        return builder.factors(prober.quarter(0), tiny.smallest, tiny.large) &&
               builder.factors(prober.quarter(1), -tiny.smallest, tiny.large) &&
               builder.product(prober.quarter(2), exponent);
      });
  const LastVisible last = last_visible(left, [](double value) { return value != 0; });
  if (left.empty() || last.all) return {};
  const int exponent = tiny.value - 1 - last.steps + fraction_bits;
  if (exponent == tiny.aligned) return seen_word("that of the smallest normal number");
  return seen_word(exponent == tiny.value ? "their own" : "another");
}

Seen subnormal_results(Prober& prober) {
  const int exponent = prober.range().output_normal - 3;
  const auto value = prober.value([&](RowBuilder& builder) {
    return exponent >= prober.range().smallest_normal ? builder.product(prober.group()[0], exponent)
                                                      : builder.addend_power(exponent);
  });
  if (!value) return {};
  return seen_word(*value == std::ldexp(1.0, exponent) ? "kept" : "flushed");
}

}  // namespace

void find_products(Prober& prober) {
  prober.add(property::product, product_rounding(prober));
  if (prober.shape().input != prober.shape().operand) {
    prober.add(property::operand, operand_rounding(prober));
  }
}

void find_subnormals(Prober& prober) {
  const SubnormalProduct tiny = subnormal_product(prober.shape());
  const auto value = prober.value([&](RowBuilder& builder) {
    return builder.factors(prober.group()[0], tiny.smallest, tiny.large);
  });
  const bool kept = value && *value == std::ldexp(1.0, tiny.value);
  prober.add(property::subnormal_operands, value ? seen_word(kept ? "kept" : "flushed") : Seen{});
  const Seen fraction = prober.found(property::fraction_bits);
  if (kept && fraction.kind == Seen::Kind::number && prober.group().size() >= 4) {
    prober.add(property::subnormal_alignment, subnormal_alignment(prober, tiny, fraction.number));
  }
  prober.add(property::subnormal_results, subnormal_results(prober));
}

}  // namespace kvsim::gpu
