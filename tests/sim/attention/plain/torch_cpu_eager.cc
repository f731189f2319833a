// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/torch_cpu_eager.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "softfloat/formats.h"
#include "tests/sim/attention/plain/torch_cpu.h"
#include "tests/sim/exp_plain.h"
#include "tests/sim/linear_oracle.h"

namespace kvsim::plain {
namespace {

/// oneDNN's product of bfloat16 matrices: pairs in blocks of 512 terms, or of 1,024 where several
/// rows have more than 1,024 terms.
float onednn_dot(const test::OneOutput& o) {
  const std::int64_t block = o.rows > 1 && o.terms() > 1024 ? 1024 : 512;
  return test::in_blocks(o, block,
                         [](const test::OneOutput& part, std::int64_t begin, std::int64_t end) {
                           return test::unit_sum(part, "x86.vdpbf16ps.bf16.f32", begin, end);
                         });
}

/// Four lanes of fused multiply-adds, added in turn; what is left over goes to the first.
float four_fused_lanes(std::span<const float> a, std::span<const float> b) {
  std::array<float, 4> lanes{};
  const std::size_t whole = a.size() / 4 * 4;
  for (std::size_t k = 0; k < a.size(); ++k) {
    float& lane = lanes[k < whole ? k % 4 : 0];
    lane = std::fma(a[k], b[k], lane);
  }
  return ((lanes[0] + lanes[1]) + lanes[2]) + lanes[3];
}

/// The two products of one layer, an output at a time.
class Products {
 public:
  Products(const Problem& problem, bool avx2) : p_(problem), avx2_(avx2) {}

  [[nodiscard]] float score(std::span<const float> q, std::span<const float> k,
                            const Place& at) const {
    if (has_onednn(at, p_.head_dim)) return onednn_dot(one_output(q, k, at));
    if (at.rows * at.columns * p_.head_dim < 400) return serial_dot(q, k, 0);
    const test::OneOutput o = one_output(q, k, at);
    if (p_.storage != softfloat::binary32) return test::aten_dot(o);
    // With a single key its probability is 1 whatever its score is.
    if (at.columns == 1) return test::fma_sum(o, 0, o.terms());
    return avx2_ ? test::torch_avx2_float32(o) : test::torch_float32(o);
  }

  [[nodiscard]] float value(std::span<const float> e, std::span<const float> v,
                            const Place& at) const {
    if (has_onednn(at, p_.kv_len)) return onednn_dot(one_output(e, v, at));
    if (at.rows * at.columns * p_.kv_len < 400) return serial_dot(e, v, 0);
    if (p_.storage != softfloat::binary32) return four_fused_lanes(e, v);
    if (at.rows < 4 || at.columns < 12) return serial_dot(e, v, 0);
    return blocked_dot(e, v, nullptr);
  }

 private:
  /// oneDNN, where it is on, takes bfloat16 products whose heads have more than 4,096
  /// multiply-adds together.
  [[nodiscard]] bool has_onednn(const Place& at, std::int64_t terms) const {
    if (avx2_ || p_.storage == softfloat::binary32) return false;
    return p_.batch * p_.heads * at.rows * at.columns * terms > 4096;
  }

  const Problem& p_;
  bool avx2_;
};

/// softmax of float32 in vectors of `width`, rounded to storage.
std::vector<float> softmax(const Problem& p, const std::vector<float>& scores, std::size_t width) {
  const float m = *std::max_element(scores.begin(), scores.end());
  std::vector<float> e;
  for (const float s : scores) e.push_back(oracle::plain_sleef_u10(s - m));
  float sum = e[0];
  if (e.size() < width) {
    for (std::size_t j = 1; j < e.size(); ++j) sum = sum + e[j];
  } else {
    std::vector<float> lanes(width, 0.0F);
    for (std::size_t j = 0; j < e.size(); ++j) lanes[j % width] = lanes[j % width] + e[j];
    for (std::size_t half = width / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
    }
    sum = lanes[0];
  }
  const float inverse = 1.0F / sum;
  for (float& x : e) x = rounded(p.storage, x * inverse);
  return e;
}

Result run(const Problem& p, bool avx2) {
  Result result;
  const Products products(p, avx2);
  for (std::int64_t head = 0; head < p.heads; ++head) {
    for (std::int64_t i = 0; i < p.query_len; ++i) {
      std::vector<float> scores;
      for (std::int64_t j = 0; j < p.kv_len; ++j) {
        const Place at{p.query_len, i, p.kv_len, j};
        float s = rounded(p.storage, products.score(p.query(head, i), p.key(head, j), at));
        s = rounded(p.storage, s * p.scale());
        if (p.soft_cap > 0) {
          s = rounded(p.storage, s / p.soft_cap);
          s = rounded(p.storage, tanh_f(s));
          s = rounded(p.storage, s * p.soft_cap);
        }
        scores.push_back(p.sees(i, j) ? s : -infinity);
      }
      const std::vector<float> e = softmax(p, scores, avx2 ? 8 : 16);
      std::vector<float> column(e.size());
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        for (std::size_t j = 0; j < column.size(); ++j) {
          column[j] = p.value(head, static_cast<std::int64_t>(j))[static_cast<std::size_t>(d)];
        }
        const Place at{p.query_len, i, p.head_dim, d};
        result.out.push_back(rounded(p.storage, products.value(e, column, at)));
      }
    }
  }
  return result;
}

}  // namespace

Result torch_cpu_eager(const Problem& p) { return run(p, false); }

Result torch_cpu_avx2_eager(const Problem& p) { return run(p, true); }

}  // namespace kvsim::plain
