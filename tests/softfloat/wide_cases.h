// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// The sweeps over binary32 and binary64 that wide_test.cc and wide_level2_test.cc run.

#include <gtest/gtest.h>

#include "softfloat/formats.h"
#include "tests/softfloat/operands.h"

namespace kvsim::oracle {

/// Every pattern, pair or triple of patterns, in every rounding and both kinds of tininess.
template <Op op>
void check_patterns(const Format& f, int level) {
  const std::vector<Bits> operands = operand_patterns(f, level);
  const std::vector<Bits> none{0};
  const std::vector<Bits>& second = operand_count(op) > 1 ? operands : none;
  const std::vector<Bits>& third = operand_count(op) > 2 ? operands : none;
  const std::vector<Mode> modes = rounding_modes();
  FailureLog log;
  parallel_for(operands.size(), [&](std::uint64_t i) {
    for (const Bits b : second) {
      for (const Bits c : third) check_case<op>(modes, f, f, operands[i], b, c, log);
    }
  });
  EXPECT_EQ(log.count(), 0U) << log.report();
}

/// The same for conversions to every format.
inline void check_conversion_patterns(const Format& f, int level) {
  const std::vector<Mode> modes = rounding_modes();
  FailureLog log;
  for (const softfloat::NamedFormat& to : softfloat::formats()) {
    for (const Bits a : operand_patterns(f, level)) {
      check_case<Op::convert>(modes, to.format, f, a, 0, 0, log);
    }
  }
  EXPECT_EQ(log.count(), 0U) << log.report();
}

/// `count` random cases, every rounding each; the kind of tininess alternates. Conversions take the
/// target formats in turn.
template <Op op>
void check_random(const Format& f, std::uint64_t count, std::uint64_t seed) {
  const RandomOperands random(f);
  const std::vector<Mode> modes = rounding_modes();
  const std::span<const Mode> halves[] = {std::span(modes).first(modes.size() / 2),
                                          std::span(modes).last(modes.size() / 2)};
  const auto targets = softfloat::formats();
  FailureLog log;
  constexpr std::uint64_t kBlock = 1000;
  parallel_for(count / kBlock, [&](std::uint64_t block) {
    for (std::uint64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
      const std::uint64_t base = mix(seed) + 4 * i;
      const Bits a = random(base), b = random(base + 1);
      const Bits c = i % 8 < 2 ? random.near_cancellation(a, b, base + 2) : random(base + 2);
      const Format& to = op == Op::convert ? targets[(i / 2) % targets.size()].format : f;
      check_case<op>(halves[i % 2], to, f, a, b, c, log);
    }
  });
  EXPECT_EQ(log.count(), 0U) << log.report();
}

}  // namespace kvsim::oracle
