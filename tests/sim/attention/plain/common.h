// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"

/// \file
/// The second, plain version of the attention kernels: what its families share. Written from
/// docs/attention.md; shares no code with sim/attention, the engine or the exp models.
namespace kvsim::plain {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
/// log2(e) and ln(2), each rounded to binary32.
inline constexpr float log2e = 0x1.715476p+0F;
inline constexpr float ln2 = 0x1.62e43p-1F;

/// One attention layer with its numbers. Names and meanings are those of docs/attention.md.
struct Problem {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t query_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 1;
  bool causal = true;
  std::int64_t window = 0;
  float soft_cap = 0;
  float given_scale = 0;      ///< 0: 1 ÷ √head_dim
  softfloat::Format storage;  ///< of q, k, v
  std::int64_t batch = 1;
  std::int64_t longest_kv_len = 0;    ///< 0: kv_len
  std::vector<std::int64_t> kv_lens;  ///< of every sequence, this one's included; may be empty
  std::int64_t multiprocessors = 0;
  std::int64_t forced_splits = 0;
  std::int64_t split_size = 0;
  std::int64_t cpu_threads = 1;
  std::int64_t page_size = 16;
  bool paged = false;
  std::vector<float> q;  ///< [heads][query_len][head_dim]
  std::vector<float> k;  ///< [kv_heads][kv_len][head_dim]
  std::vector<float> v;  ///< [kv_heads][kv_len][head_dim]

  [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] std::int64_t longest() const {
    return longest_kv_len > 0 ? longest_kv_len : kv_len;
  }
  [[nodiscard]] float scale() const;
  [[nodiscard]] bool sees(std::int64_t query, std::int64_t key) const;
  [[nodiscard]] std::span<const float> query(std::int64_t head, std::int64_t i) const;
  /// The key or value that query head `head` reads at position `j`.
  [[nodiscard]] std::span<const float> key(std::int64_t head, std::int64_t j) const;
  [[nodiscard]] std::span<const float> value(std::int64_t head, std::int64_t j) const;
};

/// [heads][query_len][head_dim] and [heads][query_len]; lse is empty where a family has none.
struct Result {
  std::vector<float> out;
  std::vector<float> lse;
  std::int64_t splits = 1;
};

/// x rounded to f, ties to even, as a number.
[[nodiscard]] float rounded(const softfloat::Format& f, float x);
/// The code of a number of f.
[[nodiscard]] softfloat::Bits code(const softfloat::Format& f, float x);

/// Correctly rounded to binary32 by MPFR.
[[nodiscard]] float exp_f(float x);
[[nodiscard]] float exp2_f(float x);
[[nodiscard]] float log_f(float x);
[[nodiscard]] float log2_f(float x);
[[nodiscard]] float tanh_f(float x);
/// ex2.approx.ftz without a table: exp2_f with subnormal results flushed to +0.
[[nodiscard]] float exp2_flushed(float x);
/// e^x by exp2_flushed of x · log2e.
[[nodiscard]] float exp_by_exp2(float x);
/// PyTorch's exp_u20 and fexp_u20 (AVX-512), and FlashAttention-4's cubic for exp2.
[[nodiscard]] float exp_u20(float x);
[[nodiscard]] float fexp_u20(float x);
[[nodiscard]] float exp2_cubic(float x);
/// The two ways in which scale and maximum enter an exponent.
[[nodiscard]] float fused_exponent(float score, float maximum, float scale_log2);
[[nodiscard]] float unfused_exponent(float score, float maximum, float scale_log2);

/// One chain of instructions of a matrix unit: c + Σ a[k]·b[k] in increasing k.
[[nodiscard]] float chain(const MatrixUnit& unit, std::span<const float> a,
                          std::span<const float> b, float c = 0);
/// The unit "PREFIX.FORMAT.f32" or "PREFIX.f16.f16" for operands of `storage`.
[[nodiscard]] const MatrixUnit& unit_for(std::string_view prefix, const softfloat::Format& storage);
[[nodiscard]] const MatrixUnit& unit_named(std::string_view name);

/// Σ a[k]·b[k], rounded once to binary32, ties to even.
[[nodiscard]] float exact_dot(std::span<const float> a, std::span<const float> b);

/// Lane i with lane i + W/2, then W/4, …; a width that is no power of two is filled up with lanes
/// that are skipped.
[[nodiscard]] float butterfly(std::vector<float> lanes);

[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace kvsim::plain
