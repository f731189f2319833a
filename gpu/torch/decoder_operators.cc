// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch/decoder_operators.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

// Each function is the statement of transformers that it stands for, term by term: x·s and s·x,
// x ÷ y and (1 ÷ y)·x, and also layouts in memory decide which kernel runs.
namespace kvsim::gpu::aten {
namespace {

using at::Tensor;

/// transformers' a ÷ tensor: Python's reflected division multiplies by the reciprocal.
Tensor divide(double a, const Tensor& b) { return b.reciprocal() * a; }

Tensor llama3_frequencies(const ModelConfig& config, const Tensor& frequencies) {
  const double factor = config.rope_factor;
  const double low = config.rope_low_frequency_factor;
  const double high = config.rope_high_frequency_factor;
  const auto original = static_cast<double>(config.rope_original_positions);
  const double low_wavelength = original / low;
  const double high_wavelength = original / high;
  const Tensor wavelength = divide(2 * std::numbers::pi, frequencies);
  const Tensor scaled = at::where(wavelength > low_wavelength, frequencies / factor, frequencies);
  const Tensor smooth = (divide(original, wavelength) - low) / (high - low);
  const Tensor smoothed = at::rsub(smooth, 1) * scaled / factor + smooth * scaled;
  const Tensor is_medium =
      at::bitwise_not(wavelength < high_wavelength) * at::bitwise_not(wavelength > low_wavelength);
  return at::where(is_medium, smoothed, scaled);
}

Tensor rotate_half(const Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  return at::cat({-x.narrow(-1, half, x.size(-1) - half), x.narrow(-1, 0, half)}, -1);
}

/// The same for neighbours, which transformers' decoders never are.
Tensor rotate_pairs(const Tensor& x) {
  const Tensor pairs = x.unflatten(-1, {-1, 2});
  return at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
}

Tensor repeat_kv(const Tensor& x, std::int64_t groups) {
  if (groups == 1) return x;
  const std::int64_t heads = x.size(1);
  return x.unsqueeze(2)
      .expand({x.size(0), heads, groups, x.size(2), x.size(3)})
      .reshape({x.size(0), heads * groups, x.size(2), x.size(3)});
}

/// transformers has scalar ** -0.5: at most the last bit of a double differs, and what computes
/// reads it as a float.
double scaling_of(const ModelConfig& config) {
  const double scalar = config.query_pre_attn_scalar > 0 ? config.query_pre_attn_scalar
                                                         : static_cast<double>(config.head_dim);
  return 1 / std::sqrt(scalar);
}

Tensor eager_attention(const OperatorContext& context, const Tensor& query, const Tensor& key,
                       const Tensor& value, const std::optional<Tensor>& mask) {
  const std::int64_t groups = context.config.query_heads / context.config.kv_heads;
  const Tensor keys = repeat_kv(key, groups);
  const Tensor values = repeat_kv(value, groups);
  Tensor weights = at::matmul(query, keys.transpose(2, 3)) * scaling_of(context.config);
  weights = soft_cap(weights, context.config.attention_soft_cap);
  if (mask) weights = weights + *mask;
  weights = at::softmax(weights, -1, context.wide()).to(query.scalar_type());
  return at::matmul(weights, values).transpose(1, 2).contiguous();
}

/// What scaled_dot_product_attention() makes of a mask before it hands it to a kernel.
std::optional<Tensor> additive(const std::optional<Tensor>& mask, at::ScalarType type) {
  if (!mask) return mask;
  return at::zeros_like(*mask, mask->options().dtype(type))
      .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
}

Tensor call_sdpa(const OperatorContext& context, const Tensor& query, const Tensor& key,
                 const Tensor& value, const std::optional<Tensor>& mask, bool causal, bool gqa) {
  const double scale = scaling_of(context.config);
  switch (context.attention) {
    case AttentionFunction::sdpa_flash:
      return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
          query, key, value, 0.0, causal, additive(mask, context.storage), scale));
    case AttentionFunction::sdpa_math:
      return std::get<0>(at::_scaled_dot_product_attention_math(
          query, key, value, additive(mask, context.storage), 0.0, causal, {}, scale, gqa));
    case AttentionFunction::eager:
    case AttentionFunction::sdpa:
      break;
  }
  return at::scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale, gqa);
}

Tensor sdpa_attention(const OperatorContext& context, Tensor query, Tensor key, Tensor value,
                      const std::optional<Tensor>& mask) {
  constexpr std::int64_t largest_head = 256;
  const std::int64_t rows = query.size(2);
  const std::int64_t groups = context.config.query_heads / context.config.kv_heads;
  bool gqa = false;
  if (groups > 1) {
    gqa = !mask && key.size(-1) <= largest_head;
    if (!gqa && rows == 1) {
      query = query.reshape({query.size(0), query.size(1) / groups, groups, query.size(3)});
    } else if (!gqa) {
      key = repeat_kv(key, groups);
      value = repeat_kv(value, groups);
    }
  }
  const bool causal = rows > 1 && !mask;
  const Tensor out = call_sdpa(context, query, key, value, mask, causal, gqa);
  return out.reshape({out.size(0), -1, rows, value.size(-1)}).transpose(1, 2).contiguous();
}

}  // namespace

Tensor rms_norm(const OperatorContext& context, const Tensor& x, const Tensor& weight) {
  const Tensor wide = x.to(context.wide());
  const Tensor variance = wide.pow(2).mean({-1}, true);
  const Tensor normed = wide * at::rsqrt(variance + context.config.norm_epsilon);
  if (context.config.norm_weight_plus_one) {
    return (normed * (weight.to(context.wide()) + 1.0)).to(x.scalar_type());
  }
  return weight * normed.to(x.scalar_type());
}

Tensor rope_frequencies(const OperatorContext& context, bool windowed) {
  const ModelConfig& config = context.config;
  const bool has_own_base = windowed && config.window_rope_base > 0;
  const double base = has_own_base ? config.window_rope_base : config.rope_base;
  const auto options = at::TensorOptions().dtype(context.wide());
  const Tensor exponents =
      at::arange(0, config.head_dim, 2, options) / static_cast<double>(config.head_dim);
  const Tensor frequencies = divide(1.0, at::pow(base, exponents));
  if (has_own_base || config.rope_scaling == ConfigRopeScaling::none) {
    return frequencies.to(context.device);
  }
  if (config.rope_scaling == ConfigRopeScaling::linear) {
    return (frequencies / config.rope_factor).to(context.device);
  }
  return llama3_frequencies(config, frequencies).to(context.device);
}

RopeFactors rope_factors(const OperatorContext& context, const Tensor& frequencies, PassSpan rows) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(context.device);
  const Tensor positions = (at::arange(rows.rows, options) + rows.first).unsqueeze(0);
  const Tensor angles = positions.unsqueeze(-1).to(context.wide()) * frequencies;
  const Tensor all = context.config.rope_interleaved ? angles.repeat_interleave(2, -1)
                                                     : at::cat({angles, angles}, -1);
  constexpr double attention_scaling = 1.0;
  return {(all.cos() * attention_scaling).to(context.storage),
          (all.sin() * attention_scaling).to(context.storage)};
}

Tensor rotate(const OperatorContext& context, const Tensor& x, const RopeFactors& factors) {
  const Tensor turned = context.config.rope_interleaved ? rotate_pairs(x) : rotate_half(x);
  return (x * factors.cosine.unsqueeze(1)) + (turned * factors.sine.unsqueeze(1));
}

std::int64_t kept_rows(PassSpan rows, std::int64_t window) {
  return window > 0 ? std::min(rows.first, window - 1) : rows.first;
}

std::optional<Tensor> attention_mask(const OperatorContext& context, PassSpan rows,
                                     std::int64_t window) {
  const std::int64_t kept = kept_rows(rows, window);
  const std::int64_t keys = kept + rows.rows;
  const bool eager = context.attention == AttentionFunction::eager;
  const bool sees_all = window == 0 || keys < window;
  const bool is_plain = rows.rows == 1 || keys == rows.rows || rows.first == 0;
  if (!eager && sees_all && is_plain) return std::nullopt;
  const auto options = at::TensorOptions().dtype(at::kLong).device(context.device);
  const Tensor query = (at::arange(rows.rows, options) + rows.first).unsqueeze(1);
  const Tensor key = (at::arange(keys, options) + (rows.first - kept)).unsqueeze(0);
  Tensor seen = key <= query;
  if (window > 0) seen = seen & (key > query - window);
  seen = seen.unsqueeze(0).unsqueeze(0);
  if (!eager) return seen;
  const auto numbers = at::TensorOptions().dtype(context.storage).device(context.device);
  double lowest = std::numeric_limits<double>::lowest();
  if (context.storage == at::kFloat) lowest = std::numeric_limits<float>::lowest();
  if (context.storage == at::kHalf) lowest = std::numeric_limits<at::Half>::lowest();
  if (context.storage == at::kBFloat16) lowest = std::numeric_limits<at::BFloat16>::lowest();
  return at::where(seen, at::zeros({}, numbers), at::scalar_tensor(lowest, numbers));
}

Tensor attend(const OperatorContext& context, const Tensor& query, const Tensor& key,
              const Tensor& value, const std::optional<Tensor>& mask) {
  if (context.attention == AttentionFunction::eager) {
    return eager_attention(context, query, key, value, mask);
  }
  return sdpa_attention(context, query, key, value, mask);
}

Tensor soft_cap(const Tensor& x, double cap) {
  if (cap == 0) return x;
  return at::tanh(x / cap) * cap;
}

Tensor activation(const OperatorContext& context, const Tensor& x) {
  if (context.config.activation == "gelu") return at::gelu(x);
  if (context.config.activation == "gelu_tanh") return at::gelu(x, "tanh");
  return at::silu(x);
}

}  // namespace kvsim::gpu::aten
