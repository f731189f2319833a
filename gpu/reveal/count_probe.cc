// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/count_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include "softfloat/format.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

float power_of_two(int exponent) { return std::ldexp(1.0F, exponent); }

/// The highest bit in which two terms differ; −1 where they are one.
int highest_difference(std::int32_t a, std::int32_t b) {
  return static_cast<int>(std::bit_width(static_cast<std::uint32_t>(a ^ b))) - 1;
}

}  // namespace

CountProbes::CountProbes(Reduction& reduction, const SumClass& sums)
    : reduction_(reduction), calls_(reduction, sums) {
  const Format& input = reduction.input();
  const int smallest = input.emin() - input.precision + 1;
  // Counts are read as they come out: up to 2^p they are exact. A mean rounds once more.
  const int output_bits = std::min<int>(reduction.output().precision, 24);
  limit_ = std::int64_t{1} << (reduction.is_mean() ? output_bits - 2 : output_bits);
  if (input.exponent_bits >= 8) {
    // What is not counted is not zero, so that no kernel can skip it.
    mask_ = power_of_two(100);
    counted_ = 1;
    other_ = power_of_two(-60);
  } else if (input.precision > 4) {
    // binary16: a mask of 2^15 hides counts up to 2^13 even where sums have 25 bits.
    mask_ = power_of_two(input.emax());
    int room = 13;
    counted_ = power_of_two(smallest);
    if (reduction.is_mean()) {
      // One of n is left after the division; the masks hide the fewer.
      const auto n = static_cast<std::uint64_t>(reduction.terms());
      const int shift = std::min(room - 1, static_cast<int>(std::bit_width(n - 1)));
      counted_ = power_of_two(smallest + shift);
      room -= shift;
    }
    limit_ = std::min(limit_, std::int64_t{1} << room);
  } else {
    split_ = reduction.has_left();
    mask_ = power_of_two(input.emax());
    counted_ = power_of_two(smallest);
    shared_large_ = split_ ? mask_ : 1;
    shared_small_ = split_ ? counted_ : 1;
  }
}

Result<std::vector<std::int64_t>> CountProbes::measure(const std::vector<CountProbe>& probes) {
  const Format& output = reduction_.output();
  if (counted_ * shared_small_ < power_of_two(output.emin() - output.precision + 1)) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{}: its output is too narrow: beside a mask no term is left that it "
                             "can show",
                             reduction_.description())};
  }
  std::vector<std::int64_t> counts(probes.size(), 0);
  const std::int64_t n = reduction_.terms();
  if (!split_) {
    std::vector<Part> parts;
    parts.reserve(probes.size());
    for (std::size_t i = 0; i < probes.size(); ++i) parts.push_back({i, -1});
    const std::vector<float> shared(index(n), 1);
    if (const auto done = add_counts(probes, parts, shared, counts); !done) return done.error();
    return counts;
  }
  // A mask needs a large factor on both sides, and a counted term a small one: the terms whose bit
  // `bit` is `value` are large, those in which it is not are counted. Every term k that is not
  // `minus` is counted once, where the highest bit that differs is `bit`.
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n - 1))));
  for (int bit = 0; bit < bits; ++bit) {
    for (const std::int32_t value : {0, 1}) {
      std::vector<float> shared(index(n), shared_small_);
      for (std::int64_t k = 0; k < n; ++k) {
        if (((k >> bit) & 1) == value) shared[index(k)] = shared_large_;
      }
      std::vector<Part> parts;
      for (std::size_t i = 0; i < probes.size(); ++i) {
        if (probes[i].minus >= 0 && ((probes[i].minus >> bit) & 1) == value) {
          parts.push_back({i, bit});
          shared[index(probes[i].plus)] = shared_large_;
        }
      }
      if (const auto done = add_counts(probes, parts, shared, counts); !done) return done.error();
    }
  }
  return counts;
}

Result<bool> CountProbes::add_counts(const std::vector<CountProbe>& probes,
                                     const std::vector<Part>& parts,
                                     const std::vector<float>& shared,
                                     std::vector<std::int64_t>& counts) {
  const std::int64_t n = reduction_.terms();
  const std::size_t slots = index(capacity());
  for (std::size_t begin = 0; begin < parts.size(); begin += slots) {
    const std::size_t used = std::min(slots, parts.size() - begin);
    std::vector<float> vectors(slots * index(n), other_);
    for (std::size_t i = 0; i < used; ++i) {
      const Part& part = parts[begin + i];
      write(probes[part.probe], part.bit, vectors.data() + i * index(n));
    }
    const auto sums = calls_.run(shared, vectors, static_cast<std::int64_t>(used));
    if (!sums) return sums.error();
    for (std::size_t i = 0; i < used; ++i) {
      const CountProbe& probe = probes[parts[begin + i].probe];
      const double one = static_cast<double>(counted_) * static_cast<double>(shared_small_);
      double count = static_cast<double>((*sums)[i]) / one;
      if (reduction_.is_mean()) count = std::floor(count * static_cast<double>(n) + 0.5);
      const auto most = static_cast<double>(probe.counted->size());
      // What is not counted may leave a trace, far below one.
      const double nearest = std::floor(count + 0.5);
      if (!(std::fabs(count - nearest) < 0x1p-10) || nearest < 0 || nearest > most) {
        return Error{
            ErrorKind::cannot_tell,
            fmt::format("{}: with masks at terms {} and {} the sum of {} ones is {}, which "
                        "is no count: no tree of additions gives it",
                        reduction_.description(), probe.plus, probe.minus, probe.counted->size(),
                        (*sums)[i])};
      }
      counts[parts[begin + i].probe] += static_cast<std::int64_t>(nearest);
    }
  }
  return true;
}

void CountProbes::write(const CountProbe& probe, int bit, float* vector) const {
  for (const std::int32_t k : *probe.counted) {
    if (bit < 0 || highest_difference(k, probe.minus) == bit) vector[k] = counted_;
  }
  if (probe.plus < 0) return;
  vector[probe.plus] = mask_;
  vector[probe.minus] = -mask_;
}

}  // namespace kvsim::gpu
