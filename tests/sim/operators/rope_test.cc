// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/operators/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "softfloat/formats.h"
#include "tests/sim/operators/plain.h"

namespace kvsim {
namespace {

using oracle::Number;
using oracle::Random;

Number power(Number base, Number exponent) {
  mpfr_t x, y;
  mpfr_inits2(24, x, y, static_cast<mpfr_ptr>(nullptr));
  mpfr_set_flt(x, base.value(), MPFR_RNDN);
  mpfr_set_flt(y, exponent.value(), MPFR_RNDN);
  mpfr_pow(x, x, y, MPFR_RNDN);
  const float result = mpfr_get_flt(x, MPFR_RNDN);
  mpfr_clears(x, y, static_cast<mpfr_ptr>(nullptr));
  return result;
}

struct Turn {
  Number cosine, sine;
};

/// Cosine and sine of pair i of d/2 at a position, straight from the rules.
Turn plain_turn(const RopeKernel& kernel, const RopeTableProblem& problem, std::int64_t position,
                std::int64_t i) {
  const Number d(static_cast<float>(problem.rotated));
  const Number base(static_cast<float>(problem.base));
  const Number p = Number(static_cast<float>(position)).rounded(kernel.position);
  Number angle;
  if (kernel.frequencies == RopeFrequencies::reciprocal_of_power) {
    const Number frequency = Number(1) / power(base, Number(static_cast<float>(2 * i)) / d);
    angle = p * frequency.rounded(kernel.frequency);
  } else {
    angle = p;
    for (std::int64_t j = 0; j < i; ++j) angle = angle * power(base, Number(-2) / d);
  }
  angle = angle.rounded(kernel.angle);
  const softfloat::Format format = kernel.table.value_or(problem.storage);
  return {oracle::by_mpfr(mpfr_cos, angle).rounded(format),
          oracle::by_mpfr(mpfr_sin, angle).rounded(format)};
}

/// A rotated pair.
std::pair<float, float> plain_rotation(const RopeKernel& kernel, const softfloat::Format& storage,
                                       const Turn& turn, Number x, Number y) {
  Number a, b;
  switch (kernel.arithmetic) {
    case RopeArithmetic::storage_steps:
      a = (x * turn.cosine).rounded(storage) - (y * turn.sine).rounded(storage);
      b = (y * turn.cosine).rounded(storage) + (x * turn.sine).rounded(storage);
      break;
    case RopeArithmetic::rounded_once:
      a = x * turn.cosine - y * turn.sine;
      b = y * turn.cosine + x * turn.sine;
      break;
    case RopeArithmetic::fused:
      a = oracle::fma(x, turn.cosine, -(y * turn.sine));
      b = oracle::fma(y, turn.cosine, x * turn.sine);
      break;
  }
  return {a.rounded(storage).value(), b.rounded(storage).value()};
}

// 100 shapes for each row: heads, lengths, partial rotation, a first position of up to 2000.
TEST(Rope, EqualsThePlainVersion) {
  for (const RopeKernel& kernel : rope_kernels()) {
    Random random(14);
    for (int shape = 0; shape < 100; ++shape) {
      const softfloat::Format storage = random.storage();
      const std::int64_t pairs = random.integer(1, 16);
      const std::int64_t length = random.integer(1, 4);
      const std::int64_t first = random.integer(0, shape % 10 == 0 ? 2000 : 40);
      const std::int64_t head_dim = 2 * pairs + random.integer(0, 3);
      const std::int64_t heads = random.integer(1, 3);
      const RopeTableProblem made{.storage = storage,
                                  .rotated = 2 * pairs,
                                  .base = shape % 3 == 0 ? 500000.0 : 10000.0,
                                  .positions = first + length};
      const Result<RopeTable> table = make_rope_table(kernel, made);
      ASSERT_TRUE(table);
      const std::vector<float> x =
          random.numbers(storage, static_cast<std::size_t>(heads * length * head_dim));
      std::vector<float> expected = x;
      for (std::int64_t row = 0; row < heads * length; ++row) {
        for (std::int64_t i = 0; i < pairs; ++i) {
          const bool half = kernel.pairs == RopePairs::half_split;
          const auto one = static_cast<std::size_t>(row * head_dim + (half ? i : 2 * i));
          const std::size_t other = half ? one + static_cast<std::size_t>(pairs) : one + 1;
          const Turn turn = plain_turn(kernel, made, first + row % length, i);
          std::tie(expected[one], expected[other]) =
              plain_rotation(kernel, storage, turn, x[one], x[other]);
        }
      }
      const RopeProblem problem{.storage = storage,
                                .heads = heads,
                                .length = length,
                                .head_dim = head_dim,
                                .first_position = first,
                                .x = x.data()};
      std::vector<float> out(x.size());
      ASSERT_TRUE(apply_rope(kernel, *table, problem, out.data()));
      ASSERT_EQ(out, expected) << kernel.name << ", shape " << shape;
      std::vector<float> in_place = x;
      RopeProblem same = problem;
      same.x = in_place.data();
      ASSERT_TRUE(apply_rope(kernel, *table, same, in_place.data(), {1, SimdLevel::scalar}));
      ASSERT_EQ(in_place, expected);
    }
  }
}

}  // namespace
}  // namespace kvsim
