// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/paged.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "softfloat/formats.h"

namespace kvsim::plain {
namespace {

/// The sum over 128 threads: thread u adds terms u, u + 128, …; then 4 warps of 32.
float block_sum(const std::vector<float>& terms) {
  std::array<float, 4> warps{};
  for (std::size_t warp = 0; warp < 4; ++warp) {
    std::vector<float> threads;
    for (std::size_t u = 32 * warp; u < 32 * warp + 32; ++u) {
      float sum = 0;
      for (std::size_t i = u; i < terms.size(); i += 128) sum = sum + terms[i];
      threads.push_back(sum);
    }
    warps[warp] = butterfly(threads);
  }
  return (warps[0] + warps[2]) + (warps[1] + warps[3]);
}

float inverse_of(float sum) {
  const float guarded = sum + 1e-6F;
  return 1.0F / guarded;
}

/// q·k by a group of threads, each with vectors of `length` elements.
float score(std::span<const float> q, std::span<const float> k, std::int64_t page_size) {
  const std::size_t threads = page_size >= 32 ? 1 : static_cast<std::size_t>(32 / page_size);
  const std::size_t length = std::max<std::size_t>(8 / threads, 1);
  std::vector<float> sums;
  for (std::size_t t = 0; t < threads; ++t) {
    std::vector<float> components(length, 0.0F);
    bool first = true;
    for (std::size_t at = t * length; at < q.size(); at += threads * length) {
      for (std::size_t c = 0; c < length; ++c) {
        components[c] =
            first ? q[at + c] * k[at + c] : std::fma(q[at + c], k[at + c], components[c]);
      }
      first = false;
    }
    float sum = components[0];
    for (std::size_t c = 1; c < length; ++c) sum = sum + components[c];
    sums.push_back(sum);
  }
  return butterfly(sums);
}

/// The products of one thread over its 8 tokens of a page.
float token_dot(const softfloat::Format& storage, const std::array<float, 8>& p,
                const std::array<float, 8>& v) {
  std::array<float, 8> products{};
  for (std::size_t i = 0; i < 8; ++i) products[i] = rounded(storage, p[i] * v[i]);
  if (storage == softfloat::binary16) {
    float even = products[0];
    float odd = products[1];
    for (std::size_t i = 2; i < 8; i += 2) {
      even = rounded(storage, even + products[i]);
      odd = rounded(storage, odd + products[i + 1]);
    }
    return even + odd;
  }
  float sum = products[0] + products[1];
  for (std::size_t i = 2; i < 8; i += 2) {
    const float pair = products[i] + products[i + 1];
    sum = sum + pair;
  }
  return sum;
}

struct Partition {
  float maximum = -0x1.fffffep+127F;  ///< -FLT_MAX, from which it grows
  float sum = 0;
  std::vector<float> out;  ///< rounded to storage
};

/// Keys first … last − 1; `first` is a multiple of the page size.
Partition partition(const Problem& p, std::int64_t head, std::int64_t first, std::int64_t last) {
  Partition part;
  std::vector<float> scores;
  for (std::int64_t j = first; j < last; ++j) {
    const float dot = score(p.query(head, 0), p.key(head, j), p.page_size);
    scores.push_back(p.scale() * dot);
    part.maximum = std::max(part.maximum, scores.back());
  }
  std::vector<float> e;
  for (const float s : scores) e.push_back(exp_by_exp2(s - part.maximum));
  part.sum = block_sum(e);
  const float inverse = inverse_of(part.sum);
  for (float& x : e) x = rounded(p.storage, x * inverse);

  const std::int64_t threads = std::max<std::int64_t>(p.page_size / 8, 1);
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    std::array<float, 4> warps{};
    for (std::int64_t warp = 0; warp < 4; ++warp) {
      std::vector<float> sums(static_cast<std::size_t>(threads), 0.0F);
      for (std::int64_t page = first + warp * p.page_size; page < last; page += 4 * p.page_size) {
        for (std::int64_t t = 0; t < threads; ++t) {
          std::array<float, 8> probabilities{};
          std::array<float, 8> values{};
          for (std::int64_t i = 0; i < 8; ++i) {
            const std::int64_t j = page + 8 * t + i;
            if (j >= last) continue;
            probabilities[static_cast<std::size_t>(i)] = e[static_cast<std::size_t>(j - first)];
            values[static_cast<std::size_t>(i)] = p.value(head, j)[static_cast<std::size_t>(d)];
          }
          float& sum = sums[static_cast<std::size_t>(t)];
          sum = sum + token_dot(p.storage, probabilities, values);
        }
      }
      warps[static_cast<std::size_t>(warp)] = butterfly(sums);
    }
    const float sum = (warps[0] + warps[2]) + (warps[1] + warps[3]);
    part.out.push_back(rounded(p.storage, sum));
  }
  return part;
}

}  // namespace

Result paged(PagedVersion version, const Problem& p) {
  constexpr std::int64_t partition_size = 512;
  Result result;
  const std::int64_t partitions = ceil_div(p.kv_len, partition_size);
  bool one_pass = version == PagedVersion::v1;
  if (version == PagedVersion::chosen) {
    const std::int64_t of_longest = ceil_div(p.longest(), partition_size);
    one_pass = p.longest() <= 8192 && (of_longest == 1 || p.batch * p.heads > 512);
  }
  for (std::int64_t head = 0; head < p.heads; ++head) {
    if (one_pass) {
      const Partition whole = partition(p, head, 0, p.kv_len);
      result.out.insert(result.out.end(), whole.out.begin(), whole.out.end());
      continue;
    }
    result.splits = partitions;
    std::vector<Partition> parts;
    float m = -0x1.fffffep+127F;
    for (std::int64_t s = 0; s < partitions; ++s) {
      parts.push_back(
          partition(p, head, s * partition_size, std::min((s + 1) * partition_size, p.kv_len)));
      m = std::max(m, parts.back().maximum);
    }
    if (partitions == 1) {
      result.out.insert(result.out.end(), parts[0].out.begin(), parts[0].out.end());
      continue;
    }
    std::vector<float> weights;
    for (const Partition& part : parts) {
      weights.push_back(part.sum * exp_by_exp2(part.maximum - m));
    }
    const float inverse = inverse_of(block_sum(weights));
    for (std::size_t d = 0; d < static_cast<std::size_t>(p.head_dim); ++d) {
      float o = 0;
      for (std::size_t s = 0; s < parts.size(); ++s) {
        const float weighted = parts[s].out[d] * weights[s];
        o = std::fma(weighted, inverse, o);
      }
      result.out.push_back(rounded(p.storage, o));
    }
  }
  return result;
}

}  // namespace kvsim::plain
