// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/online_tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "softfloat/formats.h"
#include "tests/sim/attention/plain/online_merge.h"
#include "tests/sim/attention/plain/online_splits.h"

namespace kvsim::plain {
namespace {

/// What one walk over keys leaves.
struct Walk {
  float m = -infinity;          ///< or the finite number that the family starts from
  std::array<float, 4> sums{};  // quad: one per thread; otherwise the first
  std::vector<float> o;
  bool first = true;
};

/// One query of one head.
class Row {
 public:
  Row(const OnlineKernel& kernel, const Problem& problem, std::int64_t head, std::int64_t query)
      : kernel_(kernel), p_(problem), head_(head), query_(query) {
    const bool half = kernel.tiling == Tiling::llama_cuda;
    operand_ = half ? softfloat::binary16 : p_.storage;
    score_unit_ = &unit_for(kernel.unit, operand_);
    value_unit_ = half ? &unit_named(std::string(kernel.unit) + ".f16.f16") : score_unit_;
    for (const float x : p_.query(head, query)) q_.push_back(rounded(operand_, x));
    set_scales();
  }

  /// The blocks of `columns` keys, counted from range.first, in the kernel's direction.
  Walk walk(KeyRange range, std::int64_t columns) const {
    Walk state;
    state.o.assign(static_cast<std::size_t>(p_.head_dim), 0.0F);
    if (kernel_.tiling == Tiling::flashinfer) state.m = -50'000.0F;
    if (kernel_.tiling == Tiling::llama_cuda) state.m = -0x1.fffffep+126F;
    std::vector<KeyRange> blocks;
    for (std::int64_t first = range.first; first < range.last; first += columns) {
      const KeyRange block{first, std::min(first + columns, range.last)};
      bool visible = false;
      for (std::int64_t j = block.first; j < block.last; ++j) visible |= p_.sees(query_, j);
      if (visible) blocks.push_back(block);
    }
    const bool last_first = kernel_.tiling == Tiling::fa2 || kernel_.tiling == Tiling::fa3 ||
                            kernel_.tiling == Tiling::fa4;
    if (last_first) std::reverse(blocks.begin(), blocks.end());
    for (const KeyRange& block : blocks) visit(block, columns, state);
    return state;
  }

  float sum(const Walk& w) const {
    const bool quad = kernel_.tiling == Tiling::fa2 || kernel_.tiling == Tiling::fa3;
    return quad ? (w.sums[0] + w.sums[2]) + (w.sums[1] + w.sums[3]) : w.sums[0];
  }

  /// O divided by the row sum, in binary32.
  std::vector<float> normalised(const Walk& w) const {
    std::vector<float> o = w.o;
    const float l = sum(w);
    float inverse = l == 0 || std::isnan(l) ? 1.0F : 1.0F / l;
    if (stayed_at_mask(w)) inverse = 0;
    for (float& x : o) x = kernel_.tiling == Tiling::llama_cuda ? x / l : x * inverse;
    return o;
  }

  /// FlashInfer's base-2 logarithm of the sum.
  float log2_sum(const Walk& w) const {
    return stayed_at_mask(w) ? w.m + log2_f(sum(w)) : std::fma(w.m, scale_log2_, log2_f(sum(w)));
  }

  /// The lse as the family computes it.
  float log_sum(const Walk& w) const {
    const bool flash_attention = kernel_.tiling == Tiling::fa2 || kernel_.tiling == Tiling::fa3 ||
                                 kernel_.tiling == Tiling::fa4;
    if (flash_attention && std::isnan(sum(w))) return -infinity;
    switch (kernel_.tiling) {
      case Tiling::fa3:
        return std::fma(w.m, scale_log2_ * ln2, log_f(sum(w)));
      case Tiling::fa4: {
        const float scaled = w.m * scale_log2_;
        return (scaled + log2_f(sum(w))) * ln2;
      }
      case Tiling::flashinfer:
        return log2_sum(w) * ln2;
      case Tiling::fa2:
      case Tiling::mi300:
        return std::fma(w.m, scale_after_cap_, log_f(sum(w)));
      case Tiling::llama_cuda:
        break;
    }
    return w.m + log_f(sum(w));
  }

 private:
  /// FlashInfer: no score was above that of masked keys.
  bool stayed_at_mask(const Walk& w) const {
    return kernel_.tiling == Tiling::flashinfer && w.m == -50'000.0F;
  }

  void set_scales() {
    const float scale = p_.scale();
    const float c = p_.soft_cap;
    scale_after_cap_ = scale;
    if (c > 0) {
      scale_after_cap_ = kernel_.tiling == Tiling::fa4 ? 1.0F : c;
      before_tanh_ = scale / c;
      if (kernel_.tiling == Tiling::flashinfer) {
        const float inverse = 1.0F / c;
        before_tanh_ = scale * inverse;
      }
    }
    if (kernel_.tiling == Tiling::fa4 || kernel_.tiling == Tiling::flashinfer) {
      scale_log2_ = scale_after_cap_ * log2e;
    } else {
      scale_log2_ =
          static_cast<float>(static_cast<double>(scale_after_cap_) * 0x1.71547652b82fep+0);
    }
    if (kernel_.tiling == Tiling::llama_cuda) {
      const float half_scale = rounded(operand_, c > 0 ? before_tanh_ : scale);
      for (float& x : q_) x = rounded(operand_, x * half_scale);
    }
  }

  float capped(float s) const {
    const float c = p_.soft_cap;
    if (c <= 0) return s;
    switch (kernel_.tiling) {
      case Tiling::fa4: {
        const float scaled = s * p_.scale();
        return c * tanh_f(scaled / c);
      }
      case Tiling::llama_cuda:
        return c * tanh_f(s);
      default:
        return tanh_f(s * before_tanh_);
    }
  }

  void visit(KeyRange block, std::int64_t columns, Walk& w) const {
    const float score_of_masked = kernel_.tiling == Tiling::flashinfer ? -50'000.0F : -infinity;
    std::vector<float> scores;
    bool masked = false;
    for (std::int64_t j = block.first; j < block.last; ++j) {
      float s = score_of_masked;
      masked |= !p_.sees(query_, j);
      if (p_.sees(query_, j)) {
        std::vector<float> key;
        for (const float x : p_.key(head_, j)) key.push_back(rounded(operand_, x));
        s = capped(chain(*score_unit_, q_, key));
      }
      scores.push_back(s);
    }
    while (static_cast<std::int64_t>(scores.size()) < columns) {
      masked = true;
      scores.push_back(score_of_masked);
    }

    float m = w.m;
    for (const float s : scores) {
      m = std::max(m, kernel_.tiling == Tiling::llama_cuda ? s + 3.0F * 0.6931F : s);
    }
    float r = 1;
    if (!w.first) std::tie(m, r) = rescale(w.m, m, masked);

    // Where every score so far is −∞: what is subtracted is 0 instead, if the block checks for it.
    const bool checks = kernel_.tiling != Tiling::fa3 || masked || w.first;
    const float subtracted = m == -infinity && checks ? 0.0F : m;
    std::vector<float> p;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const bool emulate = !masked && !w.first && emulated(j, columns);
      p.push_back(probability(scores[j], subtracted, emulate));
    }
    std::vector<float> p_rounded;
    for (const float x : p) p_rounded.push_back(rounded(operand_, x));
    add_to_sum(p, p_rounded, r, w);
    add_values(block, p_rounded, r, w);
    w.m = m;
    w.first = false;
  }

  // The maximum that stays and the factor for what was summed before.
  std::pair<float, float> rescale(float old, float grown, bool masked) const {
    switch (kernel_.tiling) {
      case Tiling::flashinfer: {
        const float scaled = grown * scale_log2_;
        return {grown, exp2_flushed(std::fma(old, scale_log2_, -scaled))};
      }
      case Tiling::llama_cuda: {
        const float x = old - grown;
        return {grown, x < -20.0F ? 0.0F : exp_by_exp2(x)};
      }
      default:
        break;
    }
    bool checks = true;
    if (kernel_.tiling == Tiling::fa2) checks = masked || p_.window > 0;
    if (kernel_.tiling == Tiling::fa3) checks = masked;
    const float difference = grown == -infinity && checks ? old - 0.0F : old - grown;
    const float t = difference * scale_log2_;
    if (kernel_.tiling == Tiling::fa4 && t >= -8.0F) return {old, 1.0F};
    return {grown, exp2_flushed(t)};
  }

  static bool emulated(std::size_t j, std::int64_t columns) {
    const auto fragment = static_cast<std::int64_t>(j / 32);
    const std::size_t k = j % 32 - j % 2;
    return k % 16 >= 12 && fragment >= 1 && fragment < columns / 32 - 1;
  }

  float probability(float s, float m, bool emulate) const {
    if (kernel_.tiling == Tiling::llama_cuda) {
      const float x = s - m;
      return x < -20.0F ? 0.0F : exp_by_exp2(x);
    }
    const float x =
        kernel_.unfused ? unfused_exponent(s, m, scale_log2_) : fused_exponent(s, m, scale_log2_);
    return kernel_.tiling == Tiling::fa4 && emulate ? exp2_cubic(x) : exp2_flushed(x);
  }

  void add_to_sum(const std::vector<float>& p, const std::vector<float>& p_rounded, float r,
                  Walk& w) const {
    switch (kernel_.tiling) {
      case Tiling::fa2:
      case Tiling::fa3:
        for (float& l : w.sums) l = l * r;
        // Every thread's sum starts at +0, which the first p leaves as it is.
        for (std::size_t c = 0; c < p.size(); ++c) {
          float& l = w.sums[c % 8 / 2];
          l = l + p[c];
        }
        return;
      case Tiling::fa4: {
        std::array<float, 8> a{};
        a[0] = w.first ? 0.0F : w.sums[0] * r;
        for (std::size_t c = 0; c < p.size(); ++c) a[c % 8] = a[c % 8] + p[c];
        const float even = (a[0] + a[2]) + (a[4] + a[6]);
        const float odd = (a[1] + a[3]) + (a[5] + a[7]);
        w.sums[0] = even + odd;
        return;
      }
      case Tiling::flashinfer: {
        const std::vector<float> ones(p.size(), 1.0F);
        w.sums[0] = chain(*value_unit_, p_rounded, ones, w.first ? 0.0F : w.sums[0] * r);
        return;
      }
      case Tiling::mi300:
      case Tiling::llama_cuda:
        break;
    }
    const float block = butterfly(p);
    w.sums[0] = w.first ? block : std::fma(w.sums[0], r, block);
  }

  void add_values(KeyRange block, const std::vector<float>& p_rounded, float r, Walk& w) const {
    std::vector<float> column(p_rounded.size());
    for (std::int64_t d = 0; d < p_.head_dim; ++d) {
      const auto at = static_cast<std::size_t>(d);
      for (std::size_t j = 0; j < column.size(); ++j) {
        const std::int64_t key = block.first + static_cast<std::int64_t>(j);
        column[j] = key < block.last ? rounded(operand_, p_.value(head_, key)[at]) : 0.0F;
      }
      float c = 0;
      if (!w.first && kernel_.tiling == Tiling::llama_cuda) {
        c = rounded(operand_, w.o[at] * rounded(operand_, r));
      } else if (!w.first) {
        c = w.o[at] * r;
      }
      w.o[at] = chain(*value_unit_, p_rounded, column, c);
    }
  }

  const OnlineKernel& kernel_;
  const Problem& p_;
  std::int64_t head_;
  std::int64_t query_;
  softfloat::Format operand_;
  const MatrixUnit* score_unit_ = nullptr;
  const MatrixUnit* value_unit_ = nullptr;
  std::vector<float> q_;
  float scale_after_cap_ = 0;
  float before_tanh_ = 0;
  float scale_log2_ = 0;
};

}  // namespace

Result online_tiles(const OnlineKernel& kernel, const Problem& p) {
  Result result;
  result.splits = number_of_splits(kernel, p);
  const auto head_dim = static_cast<std::size_t>(p.head_dim);
  const softfloat::Format output =
      kernel.tiling == Tiling::llama_cuda ? softfloat::binary32 : p.storage;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    for (std::int64_t i = 0; i < p.query_len; ++i) {
      const Row row(kernel, p, head, i);
      Merged merged;
      if (result.splits == 1) {
        const Walk w = row.walk({0, p.kv_len}, tile_columns(kernel.tiling, p, kernel.split_tile));
        merged.o = w.first ? std::vector<float>(head_dim, 0.0F) : row.normalised(w);
        merged.lse = w.first ? -infinity : row.log_sum(w);
      } else {
        std::vector<Part> parts(static_cast<std::size_t>(result.splits));
        for (std::size_t s = 0; s < parts.size(); ++s) {
          const KeyRange range =
              split_range(kernel, p, result.splits, static_cast<std::int64_t>(s), head, i);
          const Walk w = row.walk(range, tile_columns(kernel.tiling, p, true));
          if (w.first) continue;
          parts[s].o = row.normalised(w);
          parts[s].log = kernel.tiling == Tiling::flashinfer ? row.log2_sum(w) : row.log_sum(w);
        }
        merged = merge_parts(kernel.tiling, parts, head_dim);
      }
      for (const float x : merged.o) result.out.push_back(rounded(output, x));
      result.lse.push_back(merged.lse);
    }
  }
  return result;
}

}  // namespace kvsim::plain
