// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/probe_calls.h"

#include <algorithm>
#include <cstddef>

#include "softfloat/index.h"

namespace kvsim::gpu {
ProbeCalls::ProbeCalls(Reduction& reduction, const SumClass& sums)
    : reduction_(reduction),
      class_(sums),
      in_rows_(reduction.has_left() && sums.rows.size() > sums.columns.size()) {}

std::int64_t ProbeCalls::capacity() const {
  return static_cast<std::int64_t>(in_rows_ ? class_.rows.size() : class_.columns.size());
}

Result<std::vector<float>> ProbeCalls::run(const std::vector<float>& shared,
                                           const std::vector<float>& vectors, std::int64_t used) {
  sums_ += used;
  const auto n = static_cast<std::ptrdiff_t>(reduction_.terms());
  const std::vector<std::int64_t>& places = in_rows_ ? class_.rows : class_.columns;
  const std::int64_t all = in_rows_ ? reduction_.rows() : reduction_.columns();
  const std::int64_t others = in_rows_ ? reduction_.columns() : reduction_.rows();
  // What stands at the places of other classes does not matter.
  std::vector<float> probes;
  if (capacity() == all) {
    probes = vectors;
  } else {
    probes.reserve(index(all * n));
    for (std::int64_t i = 0; i < all; ++i) {
      probes.insert(probes.end(), vectors.begin(), vectors.begin() + n);
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::copy_n(vectors.data() + static_cast<std::ptrdiff_t>(i) * n, n,
                  probes.data() + places[i] * n);
    }
  }
  std::vector<float> repeated;
  repeated.reserve(index(others * n));
  for (std::int64_t i = 0; i < others; ++i) {
    repeated.insert(repeated.end(), shared.begin(), shared.end());
  }
  const auto sums = in_rows_ ? reduction_.run(probes, repeated) : reduction_.run(repeated, probes);
  if (!sums) return sums.error();
  std::vector<float> found;
  found.reserve(index(used));
  for (std::int64_t i = 0; i < used; ++i) {
    const std::int64_t row = in_rows_ ? places[index(i)] : class_.rows.front();
    const std::int64_t column = in_rows_ ? class_.columns.front() : places[index(i)];
    found.push_back((*sums)[index(row * reduction_.columns() + column)]);
  }
  return found;
}

Result<std::vector<float>> ProbeCalls::run(const std::vector<float>& shared,
                                           const std::vector<Sparse>& vectors) {
  std::vector<float> found;
  found.reserve(vectors.size());
  const std::size_t slots = index(capacity());
  const std::size_t n = index(terms());
  for (std::size_t begin = 0; begin < vectors.size(); begin += slots) {
    const std::size_t used = std::min(slots, vectors.size() - begin);
    std::vector<float> dense(slots * n, 0.0F);
    for (std::size_t i = 0; i < used; ++i) {
      for (const auto& [term, value] : vectors[begin + i]) dense[i * n + index(term)] = value;
    }
    const auto sums = run(shared, dense, static_cast<std::int64_t>(used));
    if (!sums) return sums.error();
    found.insert(found.end(), sums->begin(), sums->end());
  }
  return found;
}

}  // namespace kvsim::gpu
