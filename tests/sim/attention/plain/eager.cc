// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/eager.h"

#include <algorithm>
#include <cmath>

#include "softfloat/formats.h"

namespace kvsim::plain {
namespace {

float dot(const EagerKernel& kernel, const softfloat::Format& storage, const std::vector<float>& a,
          const std::vector<float>& b) {
  if (kernel.sums == EagerSums::unit) return chain(unit_for(kernel.unit, storage), a, b);
  if (kernel.sums == EagerSums::exact) return exact_dot(a, b);
  float sum = a[0] * b[0];
  for (std::size_t k = 1; k < a.size(); ++k) {
    const float product = a[k] * b[k];
    sum = sum + product;
  }
  return sum;
}

}  // namespace

float warp_sum(const softfloat::Format& format, const std::vector<float>& terms) {
  // 32 lanes with 4 accumulators each: term i goes to lane i mod 32 of accumulator (i / 32) mod 4.
  std::vector<float> lanes;
  for (std::size_t lane = 0; lane < 32 && lane < terms.size(); ++lane) {
    std::vector<float> accumulators;
    for (std::size_t i = lane; i < terms.size(); i += 32) {
      const std::size_t a = i / 32 % 4;
      if (a == accumulators.size()) {
        accumulators.push_back(terms[i]);
      } else {
        accumulators[a] = rounded(format, accumulators[a] + terms[i]);
      }
    }
    float sum = accumulators[0];
    for (std::size_t a = 1; a < accumulators.size(); ++a) {
      sum = rounded(format, sum + accumulators[a]);
    }
    lanes.push_back(sum);
  }
  for (std::size_t width = 16; width >= 1; width /= 2) {
    for (std::size_t i = 0; i < width && i + width < lanes.size(); ++i) {
      lanes[i] = rounded(format, lanes[i] + lanes[i + width]);
    }
    if (lanes.size() > width) lanes.resize(width);
  }
  return lanes[0];
}

Result eager(const EagerKernel& kernel, const Problem& p) {
  Result result;
  const softfloat::Format& storage = p.storage;
  const softfloat::Format& step = kernel.softmax_in_storage ? storage : softfloat::binary32;
  const auto kv_len = static_cast<std::size_t>(p.kv_len);
  const float root = std::sqrt(p.scale());
  const auto operand = [&](std::span<const float> numbers) {
    std::vector<float> scaled(numbers.begin(), numbers.end());
    if (kernel.sqrt_on_both) {
      for (float& x : scaled) x = rounded(storage, x * root);
    }
    return scaled;
  };
  for (std::int64_t head = 0; head < p.heads; ++head) {
    for (std::int64_t i = 0; i < p.query_len; ++i) {
      const std::vector<float> q = operand(p.query(head, i));
      std::vector<float> scores;
      for (std::int64_t j = 0; j < p.kv_len; ++j) {
        float s = rounded(storage, dot(kernel, storage, q, operand(p.key(head, j))));
        if (!kernel.sqrt_on_both) s = rounded(storage, s * p.scale());
        if (p.soft_cap > 0) {
          s = rounded(storage, s / p.soft_cap);
          s = rounded(storage, tanh_f(s));
          s = rounded(storage, s * p.soft_cap);
        }
        scores.push_back(p.sees(i, j) ? s : -infinity);
      }
      const float m = *std::max_element(scores.begin(), scores.end());
      std::vector<float> e;
      for (const float s : scores) {
        const float x = rounded(step, s - m);
        e.push_back(rounded(step, exp_f(x)));
      }
      const float l = kernel.sums == EagerSums::unit
                          ? warp_sum(step, e)
                          : dot(kernel, storage, e, std::vector<float>(e.size(), 1.0F));
      std::vector<float> probabilities;
      for (const float x : e) {
        const float quotient = rounded(step, x / l);
        probabilities.push_back(rounded(storage, quotient));
      }
      std::vector<float> column(kv_len);
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        for (std::size_t j = 0; j < kv_len; ++j) {
          column[j] = p.value(head, static_cast<std::int64_t>(j))[static_cast<std::size_t>(d)];
        }
        result.out.push_back(rounded(storage, dot(kernel, storage, probabilities, column)));
      }
    }
  }
  return result;
}

}  // namespace kvsim::plain
