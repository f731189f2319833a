// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Rounding in lanes on all 2^32 floats, at every SIMD level. The oracle is the definition of
// rounding to nearest: between two neighbours of the format, everything below their midpoint goes
// down, everything above goes up, the midpoint goes to the code whose last bit is 0. Midpoints are
// exact in double. It shares nothing with the lanes or with softfloat's rounding;
// softfloat::convert() is compared with it where it can go wrong, at every midpoint and the floats
// beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "sim/engine/columns.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

constexpr std::uint32_t infinity_code = 0x7f800000;
constexpr std::uint32_t canonical_nan = 0x7fc00000;
constexpr std::uint32_t sign_bit = 0x80000000;
constexpr std::uint32_t chunk = 1U << 14;  // its buffers stay in the cache

std::uint32_t code_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Walks the float codes upward and knows, for each positive one, the rounded result.
class Oracle {
 public:
  Oracle(const Format& format, std::uint32_t first_float) : format_(format) {
    // The last number of the format that is not above the first float.
    Bits low = 0;
    Bits high = format.max_finite();
    const double start = std::bit_cast<float>(std::min(first_float, infinity_code));
    while (low < high) {
      const Bits middle = (low + high + 1) / 2;
      if (softfloat::to_double(format, middle) <= start) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    move_to(low);
  }

  /// The rounded float of a code below 0x80000000; codes never go down from call to call.
  std::uint32_t round(std::uint32_t code) {
    if (code > infinity_code) return format_.has_nan() ? canonical_nan : value_;
    const double x = std::bit_cast<float>(code);
    while (!past_end_ && (x > midpoint_ || (x == midpoint_ && (bits_ & 1) != 0))) {
      if (bits_ == format_.max_finite()) {
        past_end_ = true;
        if (format_.has_infinity()) value_ = infinity_code;
        if (!format_.has_infinity() && format_.has_nan()) value_ = canonical_nan;
      } else {
        move_to(bits_ + 1);
      }
    }
    return value_;
  }

  /// Whether a float is the upper midpoint of the current number.
  [[nodiscard]] bool is_midpoint(std::uint32_t code) const {
    return static_cast<double>(std::bit_cast<float>(code)) == midpoint_;
  }

 private:
  void move_to(Bits bits) {
    bits_ = bits;
    value_ = code_of(softfloat::to_float(format_, bits));
    const double here = softfloat::to_double(format_, bits);
    // Above the largest number the spacing goes on as below it.
    const double next = bits == format_.max_finite()
                            ? 2 * here - softfloat::to_double(format_, bits - 1)
                            : softfloat::to_double(format_, bits + 1);
    midpoint_ = (here + next) / 2;
  }

  Format format_;
  Bits bits_ = 0;
  std::uint32_t value_ = 0;
  double midpoint_ = 0;
  bool past_end_ = false;
};

/// The negative twin of a result for a positive float.
std::uint32_t negated(const Format& format, std::uint32_t result, std::uint32_t code) {
  if (result == canonical_nan || code > infinity_code) return result;
  if (result == 0 && !format.has_negative_zero()) return 0;
  return result | sign_bit;
}

/// Checks the floats first … first + chunk − 1 and their negatives; returns the number of failures.
int check_chunk(const Format& format, std::uint32_t first, const std::vector<SimdLevel>& levels) {
  Oracle oracle(format, first);
  std::vector<float> in(chunk);
  std::vector<float> out(chunk);
  std::vector<std::uint32_t> expected(chunk);
  int failures = 0;
  const auto fail = [&](const char* who, std::uint32_t code, std::uint32_t got,
                        std::uint32_t want) {
    if (++failures > 3) return;
    ADD_FAILURE() << softfloat::format_name(format) << ", " << who << std::hex << ": float 0x"
                  << code << " gives 0x" << got << ", expected 0x" << want;
  };
  for (std::uint32_t i = 0; i < chunk; ++i) {
    const std::uint32_t code = first + i;
    expected[i] = oracle.round(code);
    in[i] = std::bit_cast<float>(code);
    if (!oracle.is_midpoint(code) || code == 0) continue;
    for (const std::uint32_t near : {code - 1, code, code + 1}) {
      const Bits bits = softfloat::convert(format, softfloat::binary32, near).bits;
      const std::uint32_t got = softfloat::is_nan(format, bits)
                                    ? canonical_nan
                                    : code_of(softfloat::to_float(format, bits));
      Oracle beside(format, near);
      if (const std::uint32_t want = beside.round(near); got != want) {
        fail("softfloat", near, got, want);
      }
    }
  }
  for (const bool negative : {false, true}) {
    if (negative) {
      for (std::uint32_t i = 0; i < chunk; ++i) {
        in[i] = std::bit_cast<float>((first + i) | sign_bit);
        expected[i] = negated(format, expected[i], first + i);
      }
    }
    for (const SimdLevel level : levels) {
      EXPECT_TRUE(round_values(format, in, out, level).has_value());
      if (std::memcmp(out.data(), expected.data(), chunk * sizeof(float)) == 0) continue;
      for (std::uint32_t i = 0; i < chunk; ++i) {
        if (code_of(out[i]) == expected[i]) continue;
        fail(simd_level_name(level).data(), code_of(in[i]), code_of(out[i]), expected[i]);
      }
    }
  }
  return failures;
}

class EngineSweep : public testing::TestWithParam<Format> {};

TEST_P(EngineSweep, RoundsAllFloats) {
  const std::vector<SimdLevel> levels = list_simd_levels();
  const unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      int failures = 0;
      for (std::uint32_t part = worker; part < sign_bit / chunk && failures == 0; part += workers) {
        failures = check_chunk(GetParam(), part * chunk, levels);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Formats, EngineSweep,
                         testing::Values(softfloat::binary16, softfloat::bfloat16, softfloat::e4m3,
                                         softfloat::e8m13),
                         [](const testing::TestParamInfo<Format>& format) {
                           return std::string(softfloat::format_name(format.param));
                         });

}  // namespace
}  // namespace kvsim
