// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/repeated_heads.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "model/quote.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

constexpr std::string_view key_of_setting = "kv-heads";
constexpr std::string_view own_heads = "shared";
constexpr std::string_view repeated_heads = "repeated";

/// What has a part for each K/V head, and where its heads stand.
struct HeadPlace {
  WeightView DecoderLayerWeights::* view;
  std::int64_t WeightView::* heads;  ///< rows of a matrix, columns of a bias
};
constexpr std::array head_places{
    HeadPlace{&DecoderLayerWeights::key, &WeightView::rows},
    HeadPlace{&DecoderLayerWeights::value, &WeightView::rows},
    HeadPlace{&DecoderLayerWeights::key_bias, &WeightView::columns},
    HeadPlace{&DecoderLayerWeights::value_bias, &WeightView::columns},
};

/// The numbers of each of `heads` equal parts, `group` times.
std::vector<std::byte> repeat(const WeightView& view, std::int64_t heads, std::int64_t group) {
  const std::int64_t width = view.format == softfloat::binary32 ? 4 : 2;
  const auto part = static_cast<std::size_t>(view.rows * view.columns * width / heads);
  const auto* const from = static_cast<const std::byte*>(view.data);
  std::vector<std::byte> numbers;
  numbers.reserve(part * static_cast<std::size_t>(heads * group));
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::byte* const begin = from + static_cast<std::size_t>(head) * part;
    for (std::int64_t i = 0; i < group; ++i) numbers.insert(numbers.end(), begin, begin + part);
  }
  return numbers;
}

}  // namespace

RepeatedModel repeat_kv_heads(const DecoderShape& shape, const DecoderWeights& weights) {
  const std::int64_t group = shape.query_heads / shape.kv_heads;
  RepeatedModel model{shape, weights, {}};
  model.shape.kv_heads = shape.query_heads;
  model.numbers.reserve(weights.layers.size() * head_places.size());
  for (DecoderLayerWeights& layer : model.weights.layers) {
    for (const HeadPlace& place : head_places) {
      WeightView& view = layer.*place.view;
      if (!view.present()) continue;
      model.numbers.push_back(repeat(view, shape.kv_heads, group));
      view.data = model.numbers.back().data();
      view.*place.heads *= group;
    }
  }
  return model;
}

const RepeatedModel& RepeatedHeads::of(const DecoderShape& shape,
                                       const DecoderWeights& weights) const {
  std::call_once(once_, [&] {
    model_ = std::make_unique<const RepeatedModel>(repeat_kv_heads(shape, weights));
  });
  return *model_;
}

Result<bool> take_kv_heads(std::vector<ArmSetting>& settings) {
  bool repeats = false;
  for (const ArmSetting& setting : settings) {
    if (setting.key != key_of_setting) continue;
    repeats = setting.value == repeated_heads;
    if (repeats || setting.value == own_heads) continue;
    return Error{ErrorKind::usage, fmt::format("setting {} is {}; accepted: {}, {}", setting.key,
                                               quote(setting.value), own_heads, repeated_heads)};
  }
  std::erase_if(settings, [](const ArmSetting& each) { return each.key == key_of_setting; });
  return repeats;
}

}  // namespace kvsim
