// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/model_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/dtype.h"
#include "model/weight_rows.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

struct LayerPlace {
  WeightRole role;
  WeightView DecoderLayerWeights::* view;
};
constexpr auto layer_places = std::to_array<LayerPlace>({
    {WeightRole::attention_norm, &DecoderLayerWeights::attention_norm},
    {WeightRole::q, &DecoderLayerWeights::query},
    {WeightRole::k, &DecoderLayerWeights::key},
    {WeightRole::v, &DecoderLayerWeights::value},
    {WeightRole::o, &DecoderLayerWeights::output},
    {WeightRole::q_bias, &DecoderLayerWeights::query_bias},
    {WeightRole::k_bias, &DecoderLayerWeights::key_bias},
    {WeightRole::v_bias, &DecoderLayerWeights::value_bias},
    {WeightRole::o_bias, &DecoderLayerWeights::output_bias},
    {WeightRole::q_norm, &DecoderLayerWeights::query_norm},
    {WeightRole::k_norm, &DecoderLayerWeights::key_norm},
    {WeightRole::post_attention_norm, &DecoderLayerWeights::attention_post_norm},
    {WeightRole::mlp_norm, &DecoderLayerWeights::mlp_norm},
    {WeightRole::gate, &DecoderLayerWeights::gate},
    {WeightRole::up, &DecoderLayerWeights::up},
    {WeightRole::down, &DecoderLayerWeights::down},
    {WeightRole::gate_bias, &DecoderLayerWeights::gate_bias},
    {WeightRole::up_bias, &DecoderLayerWeights::up_bias},
    {WeightRole::down_bias, &DecoderLayerWeights::down_bias},
    {WeightRole::post_mlp_norm, &DecoderLayerWeights::mlp_post_norm},
});

softfloat::Format format_of(Dtype dtype) {
  if (dtype == Dtype::bf16) return softfloat::bfloat16;
  return dtype == Dtype::f16 ? softfloat::binary16 : softfloat::binary32;
}

WeightView view_of(const Weight* weight) {
  if (weight == nullptr) return {};
  return {weight->bytes.data(), format_of(weight->dtype), weight->rows(), weight->columns()};
}

/// Holds true, or the error of the first number that is none.
Result<bool> check_numbers(const Checkpoint& checkpoint) {
  std::vector<float> rows;
  for (const Weight& weight : checkpoint.weights()) {
    const std::int64_t at_once = std::max<std::int64_t>(1, 65536 / weight.columns());
    for (std::int64_t first = 0; first < weight.rows(); first += at_once) {
      const std::int64_t count = std::min(at_once, weight.rows() - first);
      rows.resize(static_cast<std::size_t>(count * weight.columns()));
      const Result<bool> read = checkpoint.read_rows(weight, first, rows);
      if (!read) return read.error();
    }
  }
  return true;
}

}  // namespace

Result<DecoderWeights> decoder_weights(const Checkpoint& checkpoint) {
  const Result<bool> checked = check_numbers(checkpoint);
  if (!checked) return checked.error();
  DecoderWeights weights;
  weights.embedding = view_of(checkpoint.find(WeightRole::embedding));
  weights.final_norm = view_of(checkpoint.find(WeightRole::final_norm));
  if (!checkpoint.config().tied_embedding) {
    weights.output = view_of(checkpoint.find(WeightRole::output));
  }
  weights.layers.resize(static_cast<std::size_t>(checkpoint.config().layers));
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    for (const LayerPlace& place : layer_places) {
      weights.layers[i].*place.view =
          view_of(checkpoint.find(place.role, static_cast<std::int64_t>(i)));
    }
  }
  return weights;
}

}  // namespace kvsim
