// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/draw_arm.h"

#include <fmt/format.h>

#include <cstddef>

#include "fuzz/property/draw.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

DecoderShape draw_shape(Random& random) {
  DecoderShape shape;
  shape.layers = random.between(1, 2);
  shape.hidden = 32;
  shape.ffn = 48;
  shape.kv_heads = random.between(1, 2);
  shape.query_heads = shape.kv_heads * random.between(1, 2);
  shape.head_dim = 16;
  shape.vocabulary = 40;
  shape.norm_weight_plus_one = random.once_in(3);
  shape.sandwich_norms = random.once_in(3);
  shape.qk_norm = random.once_in(3);
  shape.qkv_bias = random.once_in(3);
  shape.output_bias = random.once_in(3);
  shape.mlp_bias = random.once_in(3);
  shape.rope_interleaved = random.once_in(3);
  if (random.once_in(3)) shape.rope_scaling = {RopeScalingKind::llama3, 8, 1, 4, 16};
  if (random.once_in(3)) {
    shape.window = random.between(2, 6);
    shape.window_rope_base = random.once_in(2) ? 0 : 500000;
  }
  if (random.once_in(3)) shape.attention_soft_cap = 5;
  if (random.once_in(3)) shape.final_soft_cap = 10;
  if (random.once_in(3)) shape.embedding_scale = 8;
  shape.activation = static_cast<GateActivation>(random.below(3));
  return shape;
}

}  // namespace

std::string Arm::text() const {
  const DecoderShape& shape = model.shape();
  std::string features;
  const auto add = [&](bool has, std::string_view name) {
    if (has) features += fmt::format(", {}", name);
  };
  add(shape.norm_weight_plus_one, "norms plus one");
  add(shape.sandwich_norms, "sandwich norms");
  add(shape.qk_norm, "q/k norms");
  add(shape.qkv_bias, "q/k/v biases");
  add(shape.rope_interleaved, "interleaved RoPE");
  add(shape.rope_scaling.kind != RopeScalingKind::none, "scaled RoPE");
  add(shape.attention_soft_cap > 0, "capped scores");
  add(shape.final_soft_cap > 0, "capped logits");
  add(shape.embedding_scale != 1, "scaled embedding");
  return fmt::format("{}, {} layers, {} query heads on {}, window {}, {}{}",
                     options.dispatch.name(), shape.layers, shape.query_heads, shape.kv_heads,
                     shape.window, to_string(shape.activation), features);
}

Result<Arm> draw_arm(PropertyInput& input, std::span<const std::string_view> dispatches) {
  const DecoderShape shape = draw_shape(input.random);
  const std::uint64_t seed = input.random.bits();
  const auto dispatch = DispatchChoice::named(one_of(input.random, dispatches));
  if (!dispatch) return dispatch.error();
  DecoderArmOptions options{.dispatch = *dispatch};
  options.plant = input.plant;
  return Arm{SmallModel(shape, softfloat::bfloat16, seed), options};
}

std::vector<std::int32_t> draw_tokens(Random& random, std::int64_t count, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
  }
  return tokens;
}

}  // namespace kvsim::fuzz
