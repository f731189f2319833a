// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/cancel_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "sim/philox.h"
#include "softfloat/format.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

/// Where the exponents of numbers lie.
struct Binades {
  int lowest = 0;
  int count = 1;
};

Binades binades_of(const Reduction& reduction, DataKind kind) {
  const Format& format = reduction.input();
  const int room = format.emax() - format.emin();
  // Products of narrow numbers over few binades would all be summed exactly.
  const bool narrow = format.precision < 24;
  switch (kind) {
    case DataKind::cancel:
      return narrow ? Binades{-6, 9} : Binades{-2, 3};
    case DataKind::wide:
      return room > 30 ? Binades{-12, 16} : Binades{-6, 12};
    case DataKind::tiny:
      break;
  }
  // With two factors, products of about the smallest normal number of a wide format; a narrow one
  // is subnormal itself.
  if (room > 100)
    return reduction.has_left() ? Binades{format.emin() / 2 - 6, 12}
                                : Binades{format.emin() - 2, 6};
  return {format.emin() - format.precision + 1, 4};
}

/// A number of the format, of either sign, from 64 random bits.
float number(const Format& format, const Binades& binades, std::uint64_t bits) {
  const int trailing = format.precision - 1;
  const auto fraction = static_cast<std::int64_t>(bits & ((std::uint64_t{1} << trailing) - 1));
  const auto binade = static_cast<int>((bits >> 32) % static_cast<std::uint64_t>(binades.count));
  int exponent = binades.lowest + binade;
  std::int64_t significand = (std::int64_t{1} << trailing) + fraction;
  // Below the smallest normal number the significand is shorter.
  for (; exponent < format.emin(); ++exponent) significand >>= 1;
  const float magnitude = std::ldexp(static_cast<float>(significand), exponent - trailing);
  return (bits >> 63) != 0 ? -magnitude : magnitude;
}

}  // namespace

CallData cancel_data(const Reduction& reduction, DataKind kind, std::uint64_t seed,
                     std::uint64_t number_of_call, bool repeated) {
  const std::int64_t n = reduction.terms();
  const Format& format = reduction.input();
  const Binades binades = binades_of(reduction, kind);
  const std::uint64_t stream =
      16 * number_of_call + 4 * static_cast<std::uint64_t>(kind);  // and the three after it

  std::vector<std::int64_t> order(index(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const std::uint64_t draw = philox_bits(seed, stream, static_cast<std::uint64_t>(i));
    std::swap(order[index(i)], order[index(i) + draw % static_cast<std::uint64_t>(n - i)]);
  }

  const auto fill = [&](std::uint64_t own_stream, std::int64_t count, float sign) {
    std::vector<float> values(index(count * n));
    const std::int64_t drawn = repeated ? 1 : count;
    for (std::int64_t i = 0; i < drawn; ++i) {
      float* const row = values.data() + i * n;
      for (std::int64_t k = 0; k < n; k += 2) {
        const std::uint64_t bits =
            philox_bits(seed, own_stream, static_cast<std::uint64_t>(i * n + k));
        row[order[index(k)]] = number(format, binades, bits);
        if (k + 1 < n) row[order[index(k + 1)]] = sign * row[order[index(k)]];
      }
    }
    for (std::int64_t i = drawn; i < count; ++i) {
      std::copy_n(values.data(), n, values.data() + i * n);
    }
    return values;
  };
  CallData data;
  if (reduction.has_left()) {
    data.left = fill(stream + 1, reduction.rows(), 1);
  } else {
    data.left.assign(index(reduction.rows() * n), 1);
  }
  data.right = fill(stream + 2, reduction.columns(), -1);
  return data;
}

}  // namespace kvsim::gpu
