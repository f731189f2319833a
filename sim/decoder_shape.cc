// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder_shape.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace kvsim {
namespace {

struct Limit {
  std::string_view name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

Error usage(std::string message) { return Error{ErrorKind::usage, std::move(message)}; }

}  // namespace

std::string_view to_string(GateActivation activation) {
  switch (activation) {
    case GateActivation::silu:
      return "silu";
    case GateActivation::gelu:
      return "gelu";
    case GateActivation::gelu_tanh:
      break;
  }
  return "gelu_tanh";
}

Result<bool> check_shape(const DecoderShape& shape) {
  constexpr std::int64_t wide = std::int64_t{1} << 20;
  const std::array<Limit, 9> limits{{
      {"layers", shape.layers, 1, 4096},
      {"hidden size", shape.hidden, 1, wide},
      {"MLP width", shape.ffn, 1, wide},
      {"query heads", shape.query_heads, 1, 1024},
      {"K/V heads", shape.kv_heads, 1, 1024},
      {"head size", shape.head_dim, 2, 1024},
      {"vocabulary", shape.vocabulary, 1, wide},
      {"window", shape.window, 0, std::int64_t{1} << 40},
      {"RoPE's original positions", shape.rope_scaling.original_positions, 1,
       std::int64_t{1} << 40},
  }};
  for (const Limit& limit : limits) {
    if (limit.value < limit.least || limit.value > limit.most) {
      return usage(fmt::format("{} {}; accepted: {} to {}", limit.name, limit.value, limit.least,
                               limit.most));
    }
  }
  if (shape.query_heads % shape.kv_heads != 0) {
    return usage(fmt::format("{} K/V heads; accepted: divisors of the {} query heads",
                             shape.kv_heads, shape.query_heads));
  }
  if (shape.head_dim % 2 != 0) {
    return usage(fmt::format("head size {}; accepted: even sizes", shape.head_dim));
  }
  if (!shape.has_window.empty() &&
      static_cast<std::int64_t>(shape.has_window.size()) != shape.layers) {
    return usage(fmt::format("{} layers have a window or not; accepted: one entry for each of {}",
                             shape.has_window.size(), shape.layers));
  }
  const auto positive = [](double x) { return std::isfinite(x) && x > 0; };
  if (!positive(shape.norm_epsilon) || !positive(shape.rope_base) ||
      !positive(shape.rope_scaling.factor) || !positive(shape.embedding_scale)) {
    return usage(fmt::format(
        "norm epsilon {}, RoPE base {}, RoPE factor {}, embedding scale {}; accepted: above 0",
        shape.norm_epsilon, shape.rope_base, shape.rope_scaling.factor, shape.embedding_scale));
  }
  const auto not_negative = [](double x) { return std::isfinite(x) && x >= 0; };
  if (!not_negative(shape.window_rope_base) || !not_negative(shape.attention_scale) ||
      !not_negative(shape.attention_soft_cap) || !not_negative(shape.final_soft_cap)) {
    return usage(fmt::format(
        "window RoPE base {}, attention scale {}, soft caps {} and {}; accepted: 0 or above",
        shape.window_rope_base, shape.attention_scale, shape.attention_soft_cap,
        shape.final_soft_cap));
  }
  const RopeScaling& rope = shape.rope_scaling;
  if (rope.kind == RopeScalingKind::llama3 &&
      !(positive(rope.low_frequency_factor) &&
        rope.high_frequency_factor > rope.low_frequency_factor)) {
    return usage(fmt::format("RoPE frequency factors {} and {}; accepted: 0 < low < high",
                             rope.low_frequency_factor, rope.high_frequency_factor));
  }
  return true;
}

}  // namespace kvsim
