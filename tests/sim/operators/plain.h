// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// binary32 on softfloat, functions by MPFR, and sums written out loop by loop: what the plain
/// versions of the operators are made of. Nothing here comes from sim/ but random numbers.

#include <mpfr.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/inputs.h"
#include "sim/philox.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/sim/elementary_oracle.h"

namespace kvsim::oracle {

/// A binary32, every operation rounded by softfloat.
struct Number {
  softfloat::Bits bits = 0;

  Number() = default;
  Number(float value) : bits(softfloat::from_float(value)) {}  // NOLINT: implicit on purpose
  [[nodiscard]] float value() const { return softfloat::to_float(softfloat::binary32, bits); }
  [[nodiscard]] Number rounded(const softfloat::Format& format) const {
    const auto narrow = softfloat::convert(format, softfloat::binary32, bits);
    return Number(softfloat::to_float(format, narrow.bits));
  }
};

inline Number from_bits(const softfloat::Rounded& result) {
  Number number;
  number.bits = result.bits;
  return number;
}
inline Number operator+(Number a, Number b) {
  return from_bits(softfloat::add(softfloat::binary32, a.bits, b.bits));
}
inline Number operator-(Number a) {
  Number number;
  number.bits = softfloat::negate(softfloat::binary32, a.bits);
  return number;
}
inline Number operator-(Number a, Number b) {
  return from_bits(softfloat::sub(softfloat::binary32, a.bits, b.bits));
}
inline Number operator*(Number a, Number b) {
  return from_bits(softfloat::mul(softfloat::binary32, a.bits, b.bits));
}
inline Number operator/(Number a, Number b) {
  return from_bits(softfloat::div(softfloat::binary32, a.bits, b.bits));
}
inline Number fma(Number a, Number b, Number c) {
  return from_bits(softfloat::fma(softfloat::binary32, a.bits, b.bits, c.bits));
}
inline Number sqrt(Number a) { return from_bits(softfloat::sqrt(softfloat::binary32, a.bits)); }

/// A function of MPFR, correctly rounded.
inline Number by_mpfr(int (*function)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t), Number x) {
  Binary32Range mpfr;
  Number result;
  result.bits = mpfr.round({"", nullptr, function}, x.value());
  return result;
}

/// a[i] × b[i] + …: a partial sum and how it takes a term. `fused`: one rounding.
struct Terms {
  std::vector<Number> a;
  std::vector<Number> b;
  bool fused = false;

  [[nodiscard]] std::size_t size() const { return a.size(); }
  void add(std::optional<Number>& sum, std::size_t k) const {
    if (fused) {
      sum = fma(a[k], b[k], sum ? *sum : Number(0));
    } else {
      const Number term = a[k] * b[k];
      sum = sum ? *sum + term : term;
    }
  }
};

inline void join(std::optional<Number>& to, const std::optional<Number>& from) {
  if (from) to = to ? *to + *from : *from;
}

/// A warp's xor shuffle from W/2 down to 1 as lane 0 sees it; lanes without a sum are passed over.
inline std::optional<Number> butterfly(std::vector<std::optional<Number>> lanes) {
  for (std::size_t step = lanes.size() / 2; step > 0; step /= 2) {
    for (std::size_t i = 0; i < step; ++i) join(lanes[i], lanes[i + step]);
  }
  return lanes[0];
}

/// Lane i takes the terms i, i + W, …; then the butterfly.
inline Number sum_of_warp(const Terms& terms, std::size_t width) {
  std::vector<std::optional<Number>> lanes(width);
  for (std::size_t k = 0; k < terms.size(); ++k) terms.add(lanes[k % width], k);
  return *butterfly(lanes);
}

/// PyTorch's vec::reduce_all with a power of two of lanes: joined by halves; fewer terms in
/// sequence. The last terms go to their lanes, or are added to the result one by one.
inline Number sum_of_lanes(const Terms& terms, std::size_t width, bool tail_after) {
  std::optional<Number> result;
  if (terms.size() < width) {
    for (std::size_t k = 0; k < terms.size(); ++k) terms.add(result, k);
    return *result;
  }
  std::vector<std::optional<Number>> lanes(width);
  const std::size_t whole = tail_after ? terms.size() / width * width : terms.size();
  for (std::size_t k = 0; k < whole; ++k) terms.add(lanes[k % width], k);
  result = butterfly(lanes);
  for (std::size_t k = whole; k < terms.size(); ++k) terms.add(result, k);
  return *result;
}

/// One row of PyTorch's cascade_sum: four levels, each emptied into the next after 2^power terms.
inline Number cascade(const std::vector<Number>& terms) {
  int log = 0;
  while ((std::size_t{1} << log) < terms.size()) ++log;
  const int power = log / 4 > 4 ? log / 4 : 4;
  const std::size_t step = std::size_t{1} << power;
  std::array<Number, 4> level{};
  std::size_t i = 0;
  while (i + step <= terms.size()) {
    for (std::size_t j = 0; j < step; ++j, ++i) level[0] = level[0] + terms[i];
    for (int j = 1; j < 4; ++j) {
      level[static_cast<std::size_t>(j)] =
          level[static_cast<std::size_t>(j)] + level[static_cast<std::size_t>(j) - 1];
      level[static_cast<std::size_t>(j) - 1] = Number(0);
      if ((i & ((step - 1) << (j * power))) != 0) break;
    }
  }
  for (; i < terms.size(); ++i) level[0] = level[0] + terms[i];
  return level[0] + level[1] + level[2] + level[3];
}

/// Four interleaved rows of cascade(); the terms left over go to the first one.
inline Number cascade_of_four(const std::vector<Number>& terms) {
  std::array<std::vector<Number>, 4> rows;
  const std::size_t whole = terms.size() / 4 * 4;
  for (std::size_t k = 0; k < whole; ++k) rows[k % 4].push_back(terms[k]);
  std::array<Number, 4> sums{};
  for (std::size_t r = 0; r < 4; ++r) sums[r] = cascade(rows[r]);
  for (std::size_t k = whole; k < terms.size(); ++k) sums[0] = sums[0] + terms[k];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

/// PyTorch's sum on a CPU: cascades of vectors of 8, the last n mod 8 terms first, then lane by
/// lane.
inline Number sum_of_torch(const Terms& terms) {
  std::vector<Number> products;
  for (std::size_t k = 0; k < terms.size(); ++k) products.push_back(terms.a[k] * terms.b[k]);
  if (products.size() < 8) return cascade_of_four(products);
  const std::size_t vectors = products.size() / 8;
  Number sum(0);
  for (std::size_t k = vectors * 8; k < products.size(); ++k) sum = sum + products[k];
  for (std::size_t lane = 0; lane < 8; ++lane) {
    std::vector<Number> column;
    for (std::size_t v = 0; v < vectors; ++v) column.push_back(products[v * 8 + lane]);
    sum = sum + cascade_of_four(column);
  }
  return sum;
}

/// Triton's tl.sum of blocks of 1024, added to a running sum from +0: 4 warps × 32 threads × 8
/// neighbours; xor trees over threads, then over warps.
inline Number sum_of_triton_blocks(const Terms& terms) {
  Number sum(0);
  for (std::size_t first = 0; first < terms.size(); first += 1024) {
    std::vector<std::optional<Number>> warps(4);
    for (std::size_t warp = 0; warp < 4; ++warp) {
      std::vector<std::optional<Number>> threads(32);
      for (std::size_t i = 0; i < 256; ++i) {
        const std::size_t k = first + warp * 256 + i;
        if (k < terms.size()) terms.add(threads[i / 8], k);
      }
      warps[warp] = butterfly(threads);
    }
    sum = sum + *butterfly(warps);
  }
  return sum;
}

/// The exact sum, rounded once; of exact or of rounded products.
inline Number sum_exactly(const Terms& terms) {
  mpfr_t sum, product;
  mpfr_inits2(700, sum, product, static_cast<mpfr_ptr>(nullptr));  // wider than 2^-298 … 2^256
  mpfr_set_zero(sum, 1);
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (terms.fused) {
      mpfr_set_flt(product, terms.a[k].value(), MPFR_RNDN);
      mpfr_mul_d(product, product, static_cast<double>(terms.b[k].value()), MPFR_RNDN);
    } else {
      mpfr_set_flt(product, (terms.a[k] * terms.b[k]).value(), MPFR_RNDN);
    }
    mpfr_add(sum, sum, product, MPFR_RNDN);
  }
  const float result = mpfr_get_flt(sum, MPFR_RNDN);
  mpfr_clears(sum, product, static_cast<mpfr_ptr>(nullptr));
  return {result};
}

/// The sum in the order of a row, by the row's name.
inline Number plain_sum(std::string_view row, const Terms& terms) {
  const auto begins = [&](std::string_view text) { return row.substr(0, text.size()) == text; };
  if (begins("torch-cpu-rms")) return sum_of_torch(terms);
  if (begins("torch-cpu-avx2-softmax-16bit")) return sum_of_lanes(terms, 8, true);
  if (begins("torch-cpu-avx2")) return sum_of_lanes(terms, 8, false);
  if (begins("torch-cpu-softmax-16bit")) return sum_of_lanes(terms, 16, true);
  if (begins("torch-cpu")) return sum_of_lanes(terms, 16, false);
  if (begins("batch-invariant")) return sum_of_triton_blocks(terms);
  if (begins("control-rms-exact") || begins("llama.cpp-cpu-rms")) return sum_exactly(terms);
  if (row == "gpu-softmax" || row == "gpu-log-softmax") return sum_of_warp(terms, 32);
  if (begins("gpu")) return sum_of_warp(terms, 1024);
  std::optional<Number> sum;
  for (std::size_t k = 0; k < terms.size(); ++k) terms.add(sum, k);
  return *sum;
}

/// Random shapes and numbers of a test.
class Random {
 public:
  explicit Random(std::uint64_t stream) : stream_(stream) {}
  /// An integer in [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(philox_bits(7, stream_, next_++) % span);
  }
  /// Normal numbers of a format.
  std::vector<float> numbers(const softfloat::Format& format, std::size_t count, double scale = 1) {
    std::vector<float> result(count);
    for (float& x : result) {
      x = Number(static_cast<float>(scale * normal(7, stream_, next_++))).rounded(format).value();
    }
    return result;
  }
  /// binary16, bfloat16 or binary32.
  softfloat::Format storage() {
    constexpr std::array formats{softfloat::binary16, softfloat::bfloat16, softfloat::binary32};
    return formats[static_cast<std::size_t>(integer(0, 2))];
  }
  /// Mostly short, sometimes beyond 1024.
  std::int64_t length() {
    constexpr std::array<std::int64_t, 4> most{20, 70, 300, 1300};
    return integer(1, most[static_cast<std::size_t>(integer(0, 3))]);
  }

 private:
  std::uint64_t stream_;
  std::uint64_t next_ = 0;
};

}  // namespace kvsim::oracle
