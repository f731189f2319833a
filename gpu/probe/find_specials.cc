// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "gpu/probe/prober.h"

namespace kvsim::gpu {
namespace {

using softfloat::Bits;

/// A quiet NaN with a sign and a payload, to see whether it passes through.
Bits marked_nan(const softfloat::Format& format) {
  return format.sign_bit() | format.canonical_nan() | Bits{5};
}

Seen nan_code(Prober& prober) {
  const softfloat::Format& operand = prober.shape().operand;
  const softfloat::Format& output = prober.shape().output;
  const int first = prober.group()[0];
  const Bits one = exact_code(operand, 1).value_or(0);
  std::vector<std::optional<Bits>> codes;
  if (operand.has_infinity()) {
    codes.push_back(prober.code([&](RowBuilder& builder) {
      builder.codes(first, operand.infinity(), 0);
      return true;
    }));
    codes.push_back(prober.code([&](RowBuilder& builder) {
      builder.codes(first, operand.infinity(), one);
      builder.codes(prober.group().back(), operand.infinity() | operand.sign_bit(), one);
      return true;
    }));
  }
  if (operand.has_nan()) {
    codes.push_back(prober.code([&](RowBuilder& builder) {
      builder.codes(first, operand.canonical_nan(), one);
      return true;
    }));
  }
  const Bits marked = marked_nan(output);
  const auto passed = prober.code([&](RowBuilder& builder) {
    builder.addend_code(marked);
    return true;
  });
  if (passed == marked) return seen_word("that of the operand");
  codes.push_back(passed);
  if (std::ranges::any_of(codes, [&](const auto& code) { return code != passed; }) || !passed) {
    return seen_word("several");
  }
  return seen_word(fmt::format("0x{:0{}x}", *passed, output.width() / 4));
}

Seen overflow(Prober& prober) {
  const int largest = prober.range().output_largest;
  const auto value = prober.value([&](RowBuilder& builder) {
    return prober.group().size() >= 2 && builder.product(prober.group()[0], largest) &&
           builder.product(prober.group()[1], largest);
  });
  if (!value) return {};
  return seen_word(std::isinf(*value) ? "infinity" : "a number");
}

Seen zero_sign(const Prober& prober, const std::optional<Bits>& code) {
  if (!code) return {};
  if (*code == 0) return seen_word("+0");
  return seen_word(*code == prober.shape().output.sign_bit() ? "-0" : "no zero");
}

}  // namespace

void find_specials(Prober& prober) {
  prober.add(property::nan, nan_code(prober));
  prober.add(property::overflow, overflow(prober));
  const auto cancelled = prober.code([&](RowBuilder& builder) {
    return prober.group().size() >= 2 && builder.product(prober.group()[0], 0) &&
           builder.product(prober.group()[1], 0, true);
  });
  prober.add(property::cancelled, zero_sign(prober, cancelled));
  const auto zeros = prober.code([&](RowBuilder& builder) {
    builder.addend_code(prober.shape().output.sign_bit());
    for (int k = 0; k < prober.shape().products; ++k) {
      if (!builder.factors(k, -1, 0)) return false;
    }
    return true;
  });
  prober.add(property::negative_zeros, zero_sign(prober, zeros));
}

}  // namespace kvsim::gpu
