// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/weights_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>

#include "sim/decoder/codes.h"
#include "sim/decoder/formats.h"
#include "sim/parallel.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Format;

bool is_weight_format(const Format& format) {
  return format == softfloat::bfloat16 || format == softfloat::binary16 ||
         format == softfloat::binary32;
}

/// Numbers begin … begin + count − 1 of the view, counted through all rows.
void read_numbers(const WeightView& view, std::int64_t begin, std::int64_t count, float* out) {
  const auto n = static_cast<std::size_t>(count);
  const auto* bytes = static_cast<const std::byte*>(view.data);
  if (view.format == softfloat::binary32) {
    std::memcpy(out, bytes + 4 * begin, 4 * n);
    return;
  }
  const std::byte* from = bytes + 2 * begin;
  const auto convert = [&](const Format& format) {
    for (std::size_t i = 0; i < n; ++i) {
      std::uint16_t code = 0;
      std::memcpy(&code, from + 2 * i, sizeof(code));
      out[i] = decoder::code_to_float(format, code);
    }
  };
  // Two loops, so that each knows its format.
  if (view.format == softfloat::bfloat16) {
    convert(softfloat::bfloat16);
  } else {
    convert(softfloat::binary16);
  }
}

struct Expected {
  const char* name;
  const WeightView* view;
  std::int64_t rows;
  std::int64_t columns;
  bool wanted = true;
};

Result<bool> check(const std::string& place, const Expected& weight) {
  const WeightView& view = *weight.view;
  if (!view.present() && !weight.wanted) return true;
  if (!view.present() || view.rows != weight.rows || view.columns != weight.columns) {
    return Error{
        ErrorKind::usage,
        fmt::format("weight {}{}: {} × {}{}; accepted: {} × {}", place, weight.name, view.rows,
                    view.columns, view.present() ? "" : " (missing)", weight.rows, weight.columns)};
  }
  if (!is_weight_format(view.format)) {
    return Error{ErrorKind::usage,
                 fmt::format("weight {}{} in {}; accepted: bfloat16, binary16, binary32", place,
                             weight.name, softfloat::format_name(view.format))};
  }
  return true;
}

}  // namespace

Result<bool> check_weights(const DecoderShape& shape, const DecoderWeights& weights) {
  const std::int64_t hidden = shape.hidden;
  const std::int64_t query = shape.query_heads * shape.head_dim;
  const std::int64_t kv = shape.kv_heads * shape.head_dim;
  const auto check_all = [](const std::string& place, std::initializer_list<Expected> list) {
    for (const Expected& weight : list) {
      Result<bool> done = check(place, weight);
      if (!done) return done;
    }
    return Result<bool>(true);
  };
  Result<bool> done = check_all("", {{"embedding", &weights.embedding, shape.vocabulary, hidden},
                                     {"output", &weights.output, shape.vocabulary, hidden, false},
                                     {"final norm", &weights.final_norm, 1, hidden}});
  if (!done) return done;
  if (static_cast<std::int64_t>(weights.layers.size()) != shape.layers) {
    return Error{ErrorKind::usage, fmt::format("weights of {} layers; accepted: {}",
                                               weights.layers.size(), shape.layers)};
  }
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const DecoderLayerWeights& layer = weights.layers[i];
    done = check_all(
        fmt::format("layer {} ", i),
        {{"attention norm", &layer.attention_norm, 1, hidden},
         {"query", &layer.query, query, hidden},
         {"key", &layer.key, kv, hidden},
         {"value", &layer.value, kv, hidden},
         {"output", &layer.output, hidden, query},
         {"query bias", &layer.query_bias, 1, query, shape.qkv_bias},
         {"key bias", &layer.key_bias, 1, kv, shape.qkv_bias},
         {"value bias", &layer.value_bias, 1, kv, shape.qkv_bias},
         {"output bias", &layer.output_bias, 1, hidden, shape.output_bias},
         {"query norm", &layer.query_norm, 1, shape.head_dim, shape.qk_norm},
         {"key norm", &layer.key_norm, 1, shape.head_dim, shape.qk_norm},
         {"attention post norm", &layer.attention_post_norm, 1, hidden, shape.sandwich_norms},
         {"MLP norm", &layer.mlp_norm, 1, hidden},
         {"gate", &layer.gate, shape.ffn, hidden},
         {"up", &layer.up, shape.ffn, hidden},
         {"down", &layer.down, hidden, shape.ffn},
         {"gate bias", &layer.gate_bias, 1, shape.ffn, shape.mlp_bias},
         {"up bias", &layer.up_bias, 1, shape.ffn, shape.mlp_bias},
         {"down bias", &layer.down_bias, 1, hidden, shape.mlp_bias},
         {"MLP post norm", &layer.mlp_post_norm, 1, hidden, shape.sandwich_norms}});
    if (!done) return done;
  }
  return true;
}

void read_weight_rows(const WeightView& view, std::int64_t first, std::span<float> out) {
  read_numbers(view, first * view.columns, static_cast<std::int64_t>(out.size()), out.data());
}

void read_weight(const WeightView& view, const Format& format, std::span<float> out,
                 const EngineOptions& options) {
  constexpr std::int64_t block = std::int64_t{1} << 16;
  const std::int64_t count = view.rows * view.columns;
  const bool rounds = !(joint_format(format, view.format) == format);
  parallel_for((count + block - 1) / block, options.threads, [&](std::int64_t i) {
    const std::int64_t begin = i * block;
    const std::span<float> part = out.subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(block, count - begin)));
    read_numbers(view, begin, static_cast<std::int64_t>(part.size()), part.data());
    if (rounds) static_cast<void>(round_values(format, part, part, options.level));
  });
}

bool is_aligned(const WeightView& view) {
  const std::uintptr_t size = view.format == softfloat::binary32 ? 4 : 2;
  return reinterpret_cast<std::uintptr_t>(view.data) % size == 0;
}

}  // namespace kvsim
