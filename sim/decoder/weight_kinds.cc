// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/weight_kinds.h"

#include <algorithm>
#include <array>

namespace kvsim::decoder {
namespace {

struct KindRow {
  WeightKind kind;
  std::string_view name;
  WeightView DecoderLayerWeights::* weight;
};

using L = DecoderLayerWeights;

constexpr auto kinds = std::to_array<KindRow>({
    {WeightKind::query, "query", &L::query},
    {WeightKind::key, "key", &L::key},
    {WeightKind::value, "value", &L::value},
    {WeightKind::output, "output", &L::output},
    {WeightKind::gate, "gate", &L::gate},
    {WeightKind::up, "up", &L::up},
    {WeightKind::down, "down", &L::down},
    {WeightKind::attention_norm, "attention-norm", &L::attention_norm},
    {WeightKind::mlp_norm, "mlp-norm", &L::mlp_norm},
    {WeightKind::attention_post_norm, "attention-post-norm", &L::attention_post_norm},
    {WeightKind::mlp_post_norm, "mlp-post-norm", &L::mlp_post_norm},
    {WeightKind::query_norm, "query-norm", &L::query_norm},
    {WeightKind::key_norm, "key-norm", &L::key_norm},
    {WeightKind::query_bias, "query-bias", &L::query_bias},
    {WeightKind::key_bias, "key-bias", &L::key_bias},
    {WeightKind::value_bias, "value-bias", &L::value_bias},
    {WeightKind::output_bias, "output-bias", &L::output_bias},
    {WeightKind::gate_bias, "gate-bias", &L::gate_bias},
    {WeightKind::up_bias, "up-bias", &L::up_bias},
    {WeightKind::down_bias, "down-bias", &L::down_bias},
});

const KindRow& row_of(WeightKind kind) { return *std::ranges::find(kinds, kind, &KindRow::kind); }

}  // namespace

const WeightView& weight_of(const DecoderLayerWeights& layer, WeightKind kind) {
  return layer.*row_of(kind).weight;
}

std::string_view name_of(WeightKind kind) { return row_of(kind).name; }

const WeightView* find_weight(const DecoderLayerWeights& layer, std::string_view name) {
  const auto* const row = std::ranges::find(kinds, name, &KindRow::name);
  return row == kinds.end() ? nullptr : &(layer.*(row->weight));
}

}  // namespace kvsim::decoder
