// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The space of decoder configurations: any shape, dispatch, format and pass is refused with one
// line or computes. A cache that was saved and restored, or truncated, gives the same pass; every
// SIMD level gives the same logits; rows that the decoder calls kept are.
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/targets/input.h"
#include "fuzz/targets/order_input.h"
#include "sim/decoder/incremental.h"
#include "sim/dispatch.h"
#include "softfloat/formats.h"

namespace {

using kvsim::DecoderShape;
using kvsim::targets::check_error;
using kvsim::targets::Input;
using kvsim::targets::require;
namespace sf = kvsim::softfloat;

DecoderShape read_shape(Input& input) {
  DecoderShape shape;
  shape.layers = input.between(1, 3);
  shape.kv_heads = input.between(1, 3);
  shape.query_heads = shape.kv_heads * input.between(1, 3);
  shape.head_dim = 2 * input.between(1, 10);
  shape.hidden = input.between(1, 40);
  shape.ffn = input.between(1, 40);
  shape.vocabulary = input.between(1, 40);
  const std::uint64_t flags = input.word(2);
  const auto flag = [&](unsigned bit) { return (flags >> bit) % 2 == 1; };
  shape.norm_weight_plus_one = flag(0);
  shape.sandwich_norms = flag(1);
  shape.qk_norm = flag(2);
  shape.qkv_bias = flag(3);
  shape.output_bias = flag(4);
  shape.mlp_bias = flag(5);
  shape.rope_interleaved = flag(6);
  if (flag(7)) shape.window = input.between(1, 9);
  if (flag(8)) shape.window_rope_base = 100;
  if (flag(9)) shape.has_window.assign(static_cast<std::size_t>(shape.layers), flag(10));
  if (flag(11)) shape.attention_soft_cap = 5;
  if (flag(12)) shape.final_soft_cap = 10;
  if (flag(13)) shape.embedding_scale = 8;
  if (flag(14)) shape.attention_scale = 0.5;
  const std::int64_t choice = input.below(9);
  shape.activation = static_cast<kvsim::GateActivation>(choice / 3);
  shape.rope_scaling.kind = static_cast<kvsim::RopeScalingKind>(choice % 3);
  shape.rope_scaling.factor = 4;
  shape.rope_scaling.original_positions = 16;
  // One field may be anything: the check has to refuse what cannot be.
  const std::array<std::int64_t*, 9> sizes = {
      &shape.layers,      &shape.hidden,   &shape.ffn,
      &shape.query_heads, &shape.kv_heads, &shape.head_dim,
      &shape.vocabulary,  &shape.window,   &shape.rope_scaling.original_positions};
  const std::array<double*, 8> factors = {&shape.norm_epsilon,       &shape.rope_base,
                                          &shape.window_rope_base,   &shape.attention_scale,
                                          &shape.attention_soft_cap, &shape.final_soft_cap,
                                          &shape.embedding_scale,    &shape.rope_scaling.factor};
  const auto field = static_cast<std::size_t>(input.below(64));
  if (field >= 1 && field <= sizes.size()) {
    *sizes[field - 1] = static_cast<std::int64_t>(input.word(8));
  } else if (field > sizes.size() && field <= sizes.size() + factors.size()) {
    *factors[field - sizes.size() - 1] = std::bit_cast<double>(input.word(8));
  }
  return shape;
}

/// Whether it is small enough to be computed many times a second.
bool is_tiny(const DecoderShape& shape) {
  return shape.layers <= 3 && shape.hidden <= 64 && shape.ffn <= 64 && shape.vocabulary <= 64 &&
         shape.query_heads <= 9 && shape.head_dim <= 32;
}

/// Weights in memory, in one format.
class Weights {
 public:
  Weights(const DecoderShape& shape, const sf::Format& format,
          const kvsim::targets::Drawing& drawing)
      : format_(format), drawing_(drawing) {
    const std::int64_t hidden = shape.hidden;
    const std::int64_t query = shape.query_heads * shape.head_dim;
    const std::int64_t kv = shape.kv_heads * shape.head_dim;
    weights_.embedding = draw(shape.vocabulary, hidden);
    weights_.final_norm = draw(1, hidden);
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      kvsim::DecoderLayerWeights layer;
      layer.attention_norm = draw(1, hidden);
      layer.query = draw(query, hidden);
      layer.key = draw(kv, hidden);
      layer.value = draw(kv, hidden);
      layer.output = draw(hidden, query);
      layer.mlp_norm = draw(1, hidden);
      layer.gate = draw(shape.ffn, hidden);
      layer.up = draw(shape.ffn, hidden);
      layer.down = draw(hidden, shape.ffn);
      if (shape.qkv_bias) {
        layer.query_bias = draw(1, query);
        layer.key_bias = draw(1, kv);
        layer.value_bias = draw(1, kv);
      }
      if (shape.output_bias) layer.output_bias = draw(1, hidden);
      if (shape.mlp_bias) {
        layer.gate_bias = draw(1, shape.ffn);
        layer.up_bias = draw(1, shape.ffn);
        layer.down_bias = draw(1, hidden);
      }
      if (shape.qk_norm) {
        layer.query_norm = draw(1, shape.head_dim);
        layer.key_norm = draw(1, shape.head_dim);
      }
      if (shape.sandwich_norms) {
        layer.attention_post_norm = draw(1, hidden);
        layer.mlp_post_norm = draw(1, hidden);
      }
      weights_.layers.push_back(layer);
    }
  }

  [[nodiscard]] const kvsim::DecoderWeights& get() const { return weights_; }

 private:
  kvsim::WeightView draw(std::int64_t rows, std::int64_t columns) {
    std::vector<std::uint8_t> bytes;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const sf::Bits code = kvsim::targets::draw_code(drawing_, format_, ++counter_);
      for (int shift = 0; shift < format_.width(); shift += 8) {
        bytes.push_back(static_cast<std::uint8_t>(code >> shift));
      }
    }
    kept_.push_back(std::move(bytes));
    return {kept_.back().data(), format_, rows, columns};
  }

  sf::Format format_;
  kvsim::targets::Drawing drawing_;
  kvsim::DecoderWeights weights_;
  std::deque<std::vector<std::uint8_t>> kept_;
  std::uint64_t counter_ = 0;
};

/// Equal numbers, NaN included; both zeros are equal.
bool equal(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])))) return false;
  }
  return true;
}

/// Every number of a cache, by its digests.
std::string digest(const kvsim::KvCache& cache) {
  std::string all;
  for (std::int64_t layer = 0; layer < cache.layers(); ++layer) {
    for (const auto part : {kvsim::KvPart::key, kvsim::KvPart::value}) {
      for (std::int64_t head = 0; head < cache.kv_heads(); ++head) {
        for (std::int64_t row = 0; row < cache.rows(); ++row) {
          all += cache.digest(layer, part, head, row);
        }
      }
    }
  }
  return all;
}

std::optional<kvsim::IncrementalDecoder> make_decoder(const DecoderShape& shape,
                                                      const Weights& weights,
                                                      const kvsim::DecoderArmOptions& options) {
  auto made = kvsim::IncrementalDecoder::make(shape, weights.get(), options);
  if (made) return std::move(*made);
  check_error(made.error());
  return std::nullopt;
}

/// Prompt, one more token in three ways that must agree, and both together where rows are kept.
void check_passes(kvsim::IncrementalDecoder& decoder, kvsim::IncrementalDecoder& plain,
                  Input& input) {
  const std::int64_t vocabulary = decoder.shape().vocabulary;
  const std::int64_t rows = input.between(1, 12);
  const std::int64_t more = input.between(1, 3);
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(rows + more));
  for (std::int64_t i = 0; i < rows + more; ++i) {
    tokens.push_back(static_cast<std::int32_t>(input.below(vocabulary)));
  }
  const std::span<const std::int32_t> all = tokens;
  kvsim::DecoderPass prompt;
  prompt.tokens = all.first(static_cast<std::size_t>(rows));
  prompt.padding = input.below(16) == 1 ? input.below(4) : 0;
  prompt.launch.batch = 1 + input.below(3);
  kvsim::KvCache cache = decoder.new_cache();
  const auto begun = decoder.pass(cache, prompt);
  if (!begun) return check_error(begun.error());
  require(cache.rows() == rows);
  require(static_cast<std::int64_t>(begun->logits.size()) == vocabulary);

  const kvsim::KvCache saved = cache;
  kvsim::DecoderPass next = prompt;
  next.tokens = all.last(static_cast<std::size_t>(more));
  next.first_row = rows;
  const auto went_on = decoder.pass(cache, next);
  if (!went_on) return check_error(went_on.error());
  const std::string state = digest(cache);
  const auto expect_same = [&](kvsim::KvCache& from) {
    const auto again = decoder.pass(from, next);
    require(again.has_value() && equal(again->logits, went_on->logits) && digest(from) == state);
  };
  expect_same(cache);  // the pass forgets the rows from its first one on
  kvsim::KvCache restored = saved;
  require(digest(restored) == digest(saved));
  expect_same(restored);
  cache.truncate(rows);
  require(digest(cache) == digest(saved));
  expect_same(cache);

  kvsim::KvCache other = plain.new_cache();
  const auto first = plain.pass(other, prompt);
  const auto second = plain.pass(other, next);
  require(first.has_value() && second.has_value() && digest(other) == state);
  require(equal(first->logits, begun->logits) && equal(second->logits, went_on->logits));

  if (!decoder.keeps_rows(rows, rows + more) || prompt.padding != 0) return;
  kvsim::DecoderPass whole = prompt;
  whole.tokens = all;
  kvsim::KvCache fresh = decoder.new_cache();
  const auto from_start = decoder.pass(fresh, whole);
  if (!from_start) return check_error(from_start.error());
  whole.known_rows = rows;
  kvsim::KvCache kept = saved;
  const auto from_kept = decoder.pass(kept, whole);
  if (!from_kept) return check_error(from_kept.error());
  require(equal(from_kept->logits, from_start->logits));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const DecoderShape shape = read_shape(input);
  const auto accepted = kvsim::check_shape(shape);
  if (!accepted) return check_error(accepted.error()), 0;
  if (!is_tiny(shape)) return 0;
  constexpr sf::Format formats[] = {sf::bfloat16, sf::binary16, sf::binary32};
  const kvsim::Dispatch& row = input.one_of(kvsim::dispatches());
  kvsim::DecoderArmOptions options{.dispatch = kvsim::DispatchChoice(row),
                                   .storage = input.one_of(formats)};
  constexpr std::array<kvsim::DispatchSetting, 6> settings = {{{"format.kv", "e4m3"},
                                                               {"format.weights", "bf16"},
                                                               {"format.logits", "fp32"},
                                                               {"format.operands", "e4m3"},
                                                               {"linear", "h100-gemv"},
                                                               {"multiprocessors", "2"}}};
  const auto setting = static_cast<std::size_t>(input.below(2 * settings.size()));
  if (setting < settings.size()) {
    const auto set = options.dispatch.set(settings[setting].line, settings[setting].value);
    if (!set) check_error(set.error());
  }
  const sf::Format& stored = input.one_of(formats);
  const auto drawing = kvsim::targets::read_drawing(input);
  const Weights weights(shape, stored, drawing);
  auto decoder = make_decoder(shape, weights, options);
  options.engine.level = kvsim::SimdLevel::scalar;
  options.attention.engine.level = kvsim::SimdLevel::scalar;
  auto plain = make_decoder(shape, weights, options);
  require(decoder.has_value() == plain.has_value());
  if (decoder && plain) check_passes(*decoder, *plain, input);
  return 0;
}
