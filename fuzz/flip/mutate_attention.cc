// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "fuzz/flip/mutate.h"
#include "softfloat/index.h"

/// Mutations that know what attention is.
namespace kvsim::fuzz {
/// Two keys change places, with their values: the blocks and splits get other maxima.
void Mutator::exchange_keys(FlipCase& child, Random& random) const {
  const AttentionShape& sizes = shape_.attention;
  const std::int64_t head = random.below(sizes.kv_heads) * sizes.kv_len;
  const std::int64_t a = (head + random.below(sizes.kv_len)) * sizes.head_dim;
  const std::int64_t b = (head + random.below(sizes.kv_len)) * sizes.head_dim;
  for (const CaseTensor tensor : {CaseTensor::k, CaseTensor::v}) {
    std::vector<float>& values = child[tensor];
    std::swap_ranges(values.begin() + a, values.begin() + a + sizes.head_dim, values.begin() + b);
  }
}

/// A run of keys, or all of them, becomes a scaled copy of one: scores at even distances from each
/// other, with block maxima where the scale says.
void Mutator::level_scores(FlipCase& child, Random& random) const {
  const AttentionShape& sizes = shape_.attention;
  std::vector<float>& keys = child[CaseTensor::k];
  const std::int64_t head = random.below(sizes.kv_heads) * sizes.kv_len;
  const std::int64_t from = (head + random.below(sizes.kv_len)) * sizes.head_dim;
  const std::int64_t count = random.once_in(2) ? sizes.kv_len : random.between(1, sizes.kv_len);
  const std::int64_t first = random.below(sizes.kv_len - count + 1);
  const std::vector<float> source(keys.begin() + from, keys.begin() + from + sizes.head_dim);
  const double spread = random.once_in(3) ? 0 : std::ldexp(1.0, -static_cast<int>(random.below(6)));
  for (std::int64_t j = first; j < first + count; ++j) {
    const double scale = 1 - spread * random.unit();
    for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
      keys[index((head + j) * sizes.head_dim + d)] =
          fitter_.fit(CaseTensor::k, scale * static_cast<double>(source[index(d)]));
    }
  }
}

void Mutator::align_tokens(FlipCase& child, bool keep, Random& random) const {
  const std::vector<float> on = scorer_.outputs(child, path_on);
  const std::vector<float> off = scorer_.outputs(child, path_off);
  if (on.empty() || off.empty()) return;
  const std::size_t n = on.size();
  std::vector<float>& tokens = child[CaseTensor::tokens];
  const double most = fitter_.largest(CaseTensor::tokens);
  std::vector<double> w(n);
  std::vector<double> change(n);
  for (std::size_t i = 0; i < n; ++i) {
    w[i] = static_cast<double>(tokens[i]) - static_cast<double>(tokens[i + n]);
    change[i] = static_cast<double>(on[i]) - static_cast<double>(off[i]);
  }
  const auto output = [&](std::size_t i) {
    return (static_cast<double>(on[i]) + static_cast<double>(off[i])) / 2;
  };
  if (!keep && on != off) {
    // Along the change: no weight where nothing changed; where the output itself would weigh, the
    // two sides are balanced.
    const int exponent = static_cast<int>(random.between(-3, 0));
    const std::int64_t widths = random.between(1, 3);
    double positive = 0;
    double negative = 0;
    for (std::size_t i = 0; i < n; ++i) {
      w[i] = change[i] == 0 ? 0
                            : std::ldexp(change[i] > 0 ? most : -most,
                                         exponent - static_cast<int>(random.below(widths)));
      const double share = w[i] * output(i);
      (share > 0 ? positive : negative) += share;
    }
    if (positive > 0 && negative < 0) {
      const double ratio = -negative / positive;
      for (std::size_t i = 0; i < n; ++i) {
        const bool up = w[i] * output(i) > 0;
        if (up == (ratio < 1)) w[i] *= up ? ratio : 1 / ratio;
      }
    }
  }
  const auto store = [&](std::size_t i) {
    tokens[i] = fitter_.fit(CaseTensor::tokens, w[i] / 2);
    tokens[i + n] = -tokens[i];
    w[i] = 2 * static_cast<double>(tokens[i]);
  };
  for (std::size_t i = 0; i < n; ++i) store(i);
  double middle = scorer_.difference(off, child, path_off);
  const double gap = scorer_.difference(on, child, path_on) - middle;
  if (gap == 0 || !std::isfinite(gap)) return;
  // Between the two differences, gap · part above that of `off`, there shall be 0.
  const double wanted = -gap * random.unit();
  for (int step = 0; step < 24; ++step) {
    const double missing = wanted - middle;
    if (std::abs(missing) <= std::abs(gap) / 64) return;
    const std::size_t i = index(random.below(static_cast<std::int64_t>(n)));
    const double out = off[i];
    if (out == 0 || std::abs(missing / out) > most) continue;
    const double before = w[i];
    w[i] = before + missing / out;
    store(i);
    middle += (w[i] - before) * out;
  }
}

}  // namespace kvsim::fuzz
