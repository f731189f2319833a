// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/incremental.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "fuzz/property/plain_decoder.h"
#include "tests/sim/decoder/tiny_model.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using test::arm;
using test::decoder_of;
using test::live_passes;
using test::logits_of;
using test::run_passes;
using test::some_tokens;
using test::TinyModel;

constexpr std::int64_t length = test::sequence_length;

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::fabs(a[i] - b[i]));
  }
  return largest;
}

DecoderShape interleaved_shape() {
  DecoderShape shape = test::tiny_shape();
  shape.rope_interleaved = true;
  shape.activation = GateActivation::gelu;
  shape.rope_scaling = {RopeScalingKind::linear, 4, 1, 4, 8192};
  return shape;
}

TEST(IncrementalDecoder, InBinary64IsAPlainDecoder) {
  for (const DecoderShape& shape : {test::tiny_shape(), test::full_shape(), interleaved_shape()}) {
    const TinyModel model(shape);
    const std::vector<double> expected = fuzz::PlainDecoder(model).logits(some_tokens(length));
    const double size = *std::ranges::max_element(expected);
    EXPECT_GT(size, 2);
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>{length}, {10, 1, 1, 7, 5}}) {
      const std::vector<double> ours = logits_of(model, arm("binary64"), lengths);
      EXPECT_LT(largest_difference(ours, expected), 1e-11 * size);
    }
  }
}

TEST(IncrementalDecoder, KernelsAreAsFarFromThatAsTheirFormats) {
  for (const DecoderShape& shape : {test::tiny_shape(), test::full_shape(), interleaved_shape()}) {
    const TinyModel model(shape);
    const std::vector<double> expected = fuzz::PlainDecoder(model).logits(some_tokens(length));
    const double size = *std::ranges::max_element(expected);
    const std::vector<std::int64_t> lengths{10, 1, 1, 7, 5};
    const auto distance = [&](std::string_view dispatch, const softfloat::Format& storage) {
      return largest_difference(logits_of(model, arm(dispatch, storage), lengths), expected) / size;
    };
    for (const std::string_view dispatch : {"fp32", "layercast", "torch-cpu", "exact"}) {
      SCOPED_TRACE(dispatch);
      EXPECT_LT(distance(dispatch, binary32), 0x1p-17);
      EXPECT_GT(distance(dispatch, binary32), 0x1p-26);
    }
    for (const std::string_view dispatch :
         {"h100-fa3", "a100-fa2", "torch-cpu", "batch-invariant", "exact"}) {
      SCOPED_TRACE(dispatch);
      EXPECT_LT(distance(dispatch, bfloat16), 0x1p-3);
      EXPECT_GT(distance(dispatch, bfloat16), 0x1p-10);
      EXPECT_LT(distance(dispatch, binary16), 0x1p-6);
      EXPECT_GT(distance(dispatch, binary16), 0x1p-13);
    }
    const double llama = distance("llama.cpp-cpu", binary32);
    EXPECT_LT(llama, 0x1p-5);
    EXPECT_GT(llama, 0x1p-14);
  }
}

TEST(IncrementalDecoder, PaddingOnTheLeftChangesNothingButTheLaunch) {
  const TinyModel model(test::full_shape());
  const std::vector<std::int32_t> tokens = some_tokens(10);
  std::vector<std::int32_t> padded(4, 0);
  padded.insert(padded.end(), tokens.begin(), tokens.end());
  const std::vector<std::int64_t> positions{1, 1, 1, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto last = [&](std::string_view dispatch, bool pads, Plant plant) {
    DecoderArmOptions options = arm(dispatch);
    options.plant = plant;
    IncrementalDecoder decoder = decoder_of(model, options);
    KvCache cache = decoder.new_cache();
    DecoderPass pass;
    pass.tokens = pads ? padded : tokens;
    if (pads) pass.positions = positions;
    if (pads) pass.padding = 4;
    EXPECT_TRUE(decoder.pass(cache, pass));
    const std::vector<std::int32_t> next{9};
    const std::vector<std::int64_t> position{10};
    pass.first_row = static_cast<std::int64_t>(pass.tokens.size());
    pass.tokens = next;
    pass.positions = position;
    return decoder.pass(cache, pass).value().logits;
  };
  // Padding is masked in the first, stripped in the others.
  for (const std::string_view dispatch : {"exact", "batch-invariant", "binary64"}) {
    EXPECT_EQ(last(dispatch, true, Plant::none), last(dispatch, false, Plant::none)) << dispatch;
  }
  for (const std::string_view dispatch : {"torch-cpu", "h100-fa3", "fp32"}) {
    EXPECT_LT(
        largest_difference(last(dispatch, true, Plant::none), last(dispatch, false, Plant::none)),
        0.3)
        << dispatch;
  }
}

TEST(IncrementalDecoder, NeighboursChangeTheKernelsOnly) {
  const TinyModel model(test::tiny_shape());
  const std::vector<std::int32_t> tokens = some_tokens(length);
  const auto last = [&](std::string_view dispatch, const DecoderLaunch& launch) {
    IncrementalDecoder decoder = decoder_of(model, arm(dispatch));
    KvCache cache = decoder.new_cache();
    run_passes(decoder, cache, tokens, {length - 1});
    DecoderPass pass;
    pass.tokens = std::span(tokens).last(1);
    pass.first_row = length - 1;
    pass.launch = launch;
    return decoder.pass(cache, pass).value().logits;
  };
  const std::vector<std::int64_t> lengths{length, 500};
  EXPECT_NE(last("fp32", {.batch = 2, .kv_lens = lengths}), last("fp32", {}));
  EXPECT_NE(last("fp32", {.batch = 1, .kv_lens = {}, .rows = 100}), last("fp32", {}));
  EXPECT_EQ(last("batch-invariant", {.batch = 2, .kv_lens = lengths}), last("batch-invariant", {}));
}

TEST(IncrementalDecoder, FormatsAreSetOneByOne) {
  const TinyModel model(test::tiny_shape());
  const TinyModel wide(test::tiny_shape(), binary32);
  const auto with = [&](const TinyModel& m, std::string_view line, std::string_view value,
                        std::string_view dispatch = "h100-fa3") {
    DecoderArmOptions options = arm(dispatch);
    EXPECT_TRUE(options.dispatch.set(line, value));
    return logits_of(m, options, live_passes);
  };
  const std::vector<double> plain = logits_of(model, arm("h100-fa3"), live_passes);
  const auto in_bfloat16 = [](const std::vector<double>& logits) {
    std::vector<float> rounded(logits.begin(), logits.end());
    EXPECT_TRUE(round_values(bfloat16, rounded, rounded));
    return std::equal(rounded.begin(), rounded.end(), logits.begin(),
                      [](float a, double b) { return static_cast<double>(a) == b; });
  };
  EXPECT_TRUE(in_bfloat16(plain));
  // A head in float32 keeps what the last rounding throws away, and changes nothing else.
  const std::vector<double> head = with(model, "format.logits", "binary32");
  EXPECT_FALSE(in_bfloat16(head));
  std::vector<float> rounded(head.begin(), head.end());
  ASSERT_TRUE(round_values(bfloat16, rounded, rounded));
  EXPECT_EQ(std::vector<double>(rounded.begin(), rounded.end()), plain);
  // Of the cache: eight bits are coarser than sixteen; a kernel must have the format.
  EXPECT_GT(largest_difference(with(model, "format.kv", "e4m3", "exact"),
                               logits_of(model, arm("exact"), live_passes)),
            0.05);
  DecoderArmOptions wide_cache = arm("h100-fa3");
  ASSERT_TRUE(wide_cache.dispatch.set("format.kv", "binary32"));
  IncrementalDecoder refused = decoder_of(model, wide_cache);
  KvCache none = refused.new_cache();
  DecoderPass pass;
  const std::vector<std::int32_t> tokens = some_tokens(3);
  pass.tokens = tokens;
  EXPECT_THAT(refused.pass(none, pass).error().message,
              testing::StartsWith("kernel h100-fa3 with binary32 storage"));
  EXPECT_EQ(none.rows(), 0);
  // Weights are rounded once: a float32 file kept in bfloat16 is the file in bfloat16.
  EXPECT_EQ(logits_of(wide, arm("layercast"), live_passes),
            logits_of(model, arm("fp32"), live_passes));
  EXPECT_NE(logits_of(wide, arm("fp32"), live_passes), logits_of(model, arm("fp32"), live_passes));
  // Sums of 64 terms in binary16 are off by some 2^−11.
  const double accumulated =
      largest_difference(with(model, "format.accumulator", "binary16", "fp32"),
                         logits_of(model, arm("fp32"), live_passes));
  EXPECT_GT(accumulated, 0x1p-11);
  EXPECT_LT(accumulated, 1);
  DecoderArmOptions narrow = arm("h100-fa3");
  ASSERT_TRUE(narrow.dispatch.set("format.accumulator", "binary16"));
  IncrementalDecoder refused_unit = decoder_of(model, narrow);
  none = refused_unit.new_cache();
  EXPECT_THAT(refused_unit.pass(none, pass).error().message, testing::HasSubstr("binary16"));
  EXPECT_NE(with(model, "format.operands", "e4m3", "exact"),
            with(model, "format.operands", "default", "exact"));
  EXPECT_LT(largest_difference(with(model, "format.activations", "binary32", "exact"),
                               logits_of(model, arm("exact", binary32), live_passes)),
            1e-30);
}

TEST(IncrementalDecoder, ShowsWhatItComputes) {
  const TinyModel model(test::full_shape());
  const std::vector<std::int32_t> tokens = some_tokens(5);
  IncrementalDecoder decoder = decoder_of(model, arm("h100-fa3"));
  KvCache cache = decoder.new_cache();
  DecoderPass pass;
  pass.tokens = tokens;
  pass.hidden_digests = true;
  std::vector<std::string> names;
  std::vector<double> keys;
  pass.observer = [&](const OperatorOutput& output) {
    EXPECT_EQ(output.values.size(), static_cast<std::size_t>(output.rows * output.width));
    if (output.layer == 1) names.emplace_back(output.operation);
    if (output.layer == 1 && output.operation == "key-rope") {
      keys.assign(output.values.begin(), output.values.end());
    }
  };
  const DecoderPassResult result = decoder.pass(cache, pass).value();
  EXPECT_THAT(names,
              testing::ElementsAre("attention-norm", "query", "key", "value", "query-norm",
                                   "key-norm", "query-rope", "key-rope", "attention", "output",
                                   "attention-post-norm", "residual", "mlp-norm", "gate", "up",
                                   "gate-product", "down", "mlp-post-norm", "residual", "hidden"));
  EXPECT_EQ(result.logits.size(), 80U);
  EXPECT_EQ(result.hidden_digests.size(), 3U);
  EXPECT_EQ(
      std::set<std::string>(result.hidden_digests.begin(), result.hidden_digests.end()).size(), 3U);
  EXPECT_TRUE(result.exp_bounded);
  // Row 2 of head 1: the cache holds what was observed.
  const std::vector<double> row(keys.begin() + 2 * 32 + 16, keys.begin() + 2 * 32 + 32);
  EXPECT_EQ(cache.read_double(1, KvPart::key, 2, 1),
            std::vector<double>(keys.begin() + 64, keys.begin() + 96));
  EXPECT_NE(cache.digest(1, KvPart::key, 1, 2), cache.digest(1, KvPart::key, 1, 3));
  // 64 · 16 · 4 · 2 + 64 · 16 · 2 · 2 + 3 · 64 · 96 a layer and row, 80 · 64 logits of one row, and
  // two products of 16 for each of the 15 scores of 4 heads (window 5: all of them).
  EXPECT_EQ(result.multiply_adds, 3 * 5 * (64 * 16 * 4 * 2 + 64 * 16 * 2 * 2 + 3 * 64 * 96) +
                                      80 * 64 + 3 * 2 * 15 * 4 * 16);
  pass.all_logits = true;
  EXPECT_EQ(decoder.pass(cache, pass).value().logits.size(), 5U * 80U);
}

TEST(IncrementalDecoder, SaysWhatItCannotDo) {
  const TinyModel model(test::tiny_shape());
  IncrementalDecoder decoder = decoder_of(model, arm("h100-fa3"));
  KvCache cache = decoder.new_cache();
  const auto error = [&](const DecoderPass& pass) {
    const Result<DecoderPassResult> result = decoder.pass(cache, pass);
    return result ? std::string("none") : result.error().message;
  };
  const std::vector<std::int32_t> tokens{1, 2, 80};
  DecoderPass pass;
  EXPECT_EQ(error(pass), "a pass without tokens; accepted: one or more");
  pass.tokens = tokens;
  EXPECT_EQ(error(pass), "token 80; accepted: 0 to 79");
  pass.tokens = std::span(tokens).first(2);
  pass.first_row = 1;
  EXPECT_EQ(error(pass), "a pass from row 1 on; accepted: 0 to 0, the rows of the cache");
  pass.first_row = 0;
  const std::vector<std::int64_t> positions{0, -1, 2};
  pass.positions = positions;
  EXPECT_EQ(error(pass), "3 positions of 2 tokens; accepted: one for each, or none");
  pass.positions = std::span(positions).first(2);
  EXPECT_EQ(error(pass), "position -1; accepted: 0 to 16777215");
  pass.positions = {};
  pass.padding = 2;
  EXPECT_EQ(error(pass), "padding of 2 rows; accepted: 0 to 1");
  pass.padding = 0;
  pass.launch.rows = 1;
  EXPECT_EQ(error(pass), "a launch of 1 rows; accepted: 0, or 2 to 1048576");
  pass.launch = {};
  KvCache other(1, 2, 16, bfloat16);
  EXPECT_FALSE(decoder.pass(other, pass));
  EXPECT_EQ(cache.rows(), 0);
  EXPECT_EQ(error(pass), "none");

  DecoderWeights weights = model.weights();
  weights.layers[1].up = weights.layers[1].down;
  EXPECT_EQ(IncrementalDecoder::make(model.shape(), weights, arm("h100")).error().message,
            "weight layer 1 up: 64 × 96; accepted: 96 × 64");
  weights.layers[1].up = {};
  EXPECT_EQ(IncrementalDecoder::make(model.shape(), weights, arm("h100")).error().message,
            "weight layer 1 up: 1 × 0 (missing); accepted: 96 × 64");
}

}  // namespace
}  // namespace kvsim
