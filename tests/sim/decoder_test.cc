// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/sim/decoder_oracle.h"

namespace kvsim {
namespace {

DecoderShape small_shape() {
  DecoderShape shape;
  shape.layers = 1;
  shape.hidden = 48;
  shape.ffn = 80;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 16;
  return shape;
}

/// Everything that a shape can ask for, in two layers of which the first has a window.
DecoderShape full_shape() {
  DecoderShape shape = small_shape();
  shape.layers = 2;
  shape.norm_weight_plus_one = true;
  shape.sandwich_norms = true;
  shape.qk_norm = true;
  shape.qkv_bias = true;
  shape.output_bias = true;
  shape.mlp_bias = true;
  shape.rope_base = 500000;
  shape.rope_scaling = {RopeScalingKind::linear, 8, 1, 4, 8192};
  shape.window_rope_base = 10000;
  shape.window = 3;
  shape.has_window = {true, false};
  shape.attention_scale = 0.125;
  shape.attention_soft_cap = 5;
  shape.embedding_scale = 2;
  shape.activation = GateActivation::gelu_tanh;
  return shape;
}

DecoderOptions options_of(const DecoderShape& shape, const char* on, const char* off) {
  DecoderOptions options;
  options.shape = shape;
  options.on = find_dispatch(on).value();
  options.off = find_dispatch(off).value();
  options.prefix = 6;
  options.seed = 5;
  return options;
}

DecoderReport run(const DecoderOptions& options) {
  const auto report = run_decoder(options);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *report : DecoderReport{};
}

void expect_composition(const DecoderShape& shape, const char* on, const char* off,
                        const softfloat::Format& storage) {
  DecoderOptions options = options_of(shape, on, off);
  options.storage = storage;
  options.controls = false;
  const DecoderReport report = run(options);
  EXPECT_EQ(report.layers.size(), static_cast<std::size_t>(shape.layers));
  EXPECT_GT(report.layers.back().on_off.differing, 0);
  test::PlainKernelDecoder plain_on(options, *options.on, true);
  test::PlainKernelDecoder plain_off(options, *options.off, false);
  EXPECT_EQ(report.on_state, plain_on.run());
  EXPECT_EQ(report.off_state, plain_off.run());
}

TEST(Decoder, IsTheCompositionOfItsOperators) {
  expect_composition(small_shape(), "cpu", "cpu", softfloat::binary32);
  DecoderShape wide = full_shape();
  wide.hidden = 320;
  expect_composition(wide, "h100", "a100", softfloat::binary16);
  wide.has_window = {false, true};
  expect_composition(wide, "mi300", "b200", softfloat::binary16);
}

TEST(Decoder, ExactSumsAreEqualWhateverTheGroups) {
  for (const softfloat::Format& storage : {softfloat::binary16, softfloat::binary32}) {
    DecoderOptions options = options_of(full_shape(), "exact-sums", "exact-sums");
    options.storage = storage;
    const DecoderReport report = run(options);
    for (const LayerDrift& layer : report.layers) {
      EXPECT_EQ(layer.on_off.differing, 0);
      EXPECT_EQ(layer.on_off.l2, 0);
      EXPECT_EQ(layer.on_accumulation.l2, 0);
      EXPECT_EQ(layer.off_accumulation.max_ulp, 0);
      EXPECT_EQ(layer.storage.l2, layer.off_total.l2);
      EXPECT_GT(layer.storage.l2, 0);
      // Two computations that share no code, but for the weights and the table of RoPE.
      EXPECT_LT(layer.storage.relative_l2, storage == softfloat::binary32 ? 0x1p-20 : 0x1p-8);
    }
    EXPECT_EQ(report.first_keys.differing, 0);
    EXPECT_FALSE(report.exp_bounded);
  }
}

// One kernel for every number of rows, no split of the keys: nothing is left to differ.
TEST(Decoder, BatchInvariantKernelsAreIndeedInvariant) {
  DecoderOptions options = options_of(small_shape(), "batch-invariant", "batch-invariant");
  options.storage = softfloat::bfloat16;
  options.shape.layers = 3;
  const DecoderReport report = run(options);
  for (const LayerDrift& layer : report.layers) {
    EXPECT_EQ(layer.on_off.differing, 0);
    EXPECT_EQ(layer.on_off.cosine, 1);
    EXPECT_GT(layer.on_accumulation.l2, 0);
  }
}

TEST(Decoder, ErrorsHaveTheSizeOfTheFormats) {
  DecoderOptions options = options_of(small_shape(), "h100", "h100");
  options.shape.layers = 3;
  const LayerDrift half = run(options).layers.back();
  options.storage = softfloat::bfloat16;
  const LayerDrift brain = run(options).layers.back();
  options.storage = softfloat::binary32;
  options.on = options.off = find_dispatch("cpu").value();
  const LayerDrift single = run(options).layers.back();
  // 2^−11, 2^−8 and 2^−24 and a factor of 8 for what three layers add up.
  EXPECT_GT(half.storage.relative_l2, 0x1p-13);
  EXPECT_LT(half.storage.relative_l2, 0x1p-8);
  EXPECT_GT(brain.storage.relative_l2, 4 * half.storage.relative_l2);
  EXPECT_LT(brain.storage.relative_l2, 0x1p-5);
  EXPECT_GT(single.off_total.relative_l2, 0x1p-26);
  EXPECT_LT(single.off_total.relative_l2, 0x1p-20);
  EXPECT_GT(single.off_total.cosine, 1 - 1e-10);
}

TEST(Decoder, CutsLayersAndTellsProgress) {
  DecoderOptions options = options_of(full_shape(), "h100", "h100");
  const DecoderReport whole = run(options);
  options.layers = 1;
  std::vector<double> shares;
  options.progress = [&](double share) { shares.push_back(share); };
  const DecoderReport cut = run(options);
  ASSERT_EQ(cut.layers.size(), 1U);
  EXPECT_EQ(cut.layers[0].on_off.l2, whole.layers[0].on_off.l2);
  EXPECT_EQ(cut.layers[0].storage.l2, whole.layers[0].storage.l2);
  ASSERT_EQ(shares.size(), 7U * 4);  // seven matrices, four decoders
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  // 7 tokens, 4 decoders, 48 · 16 · (4 + 2) · 2 + 3 · 48 · 80 weights.
  EXPECT_EQ(cut.multiply_adds, 7 * 4 * (48 * 16 * 12 + 3 * 48 * 80));
  options.engine = {.threads = 2, .level = SimdLevel::scalar};
  options.progress = nullptr;
  EXPECT_EQ(run(options).on_state, cut.on_state);
}

TEST(Decoder, TakesAttentionKernelsByName) {
  DecoderOptions options = options_of(small_shape(), "h100", "h100");
  options.controls = false;
  options.decode_attention = "a100-eager";
  EXPECT_NE(run(options).on_state, run(options_of(small_shape(), "h100", "h100")).on_state);
  options.decode_attention = "h100-fa9";
  const auto unknown = run_decoder(options);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("'h100-fa9'"), std::string::npos);
  options.decode_attention = {};
  options.prefix = 0;
  EXPECT_FALSE(run_decoder(options));
  options.prefix = 300'000;
  EXPECT_EQ(run_decoder(options).error().message,
            "a prefix of 300000 in a decoder of this size; accepted: at most 270599");
  options.prefix = 2;
  options.shape.ffn = 1 << 20;
  options.shape.hidden = 1 << 9;
  EXPECT_EQ(run_decoder(options).error().message,
            "a decoder of hidden 512, ffn 1048576 and 4 query heads of 16: a weight matrix of "
            "536870912 numbers; accepted: at most 268435456 (1 GiB)");
  options.on = nullptr;
  EXPECT_FALSE(run_decoder(options));
}

/// In binary32, where one row and several nearly always round differently.
DecoderOptions in_binary32() {
  DecoderOptions options = options_of(small_shape(), "fp32", "fp32");
  options.storage = softfloat::binary32;
  return options;
}

/// Numbers of a decoder with these passes of cache-off.
DecoderReport with_off_passes(const std::vector<std::int64_t>& passes) {
  DecoderOptions options = in_binary32();
  options.off_passes = passes;
  return run(options);
}

TEST(RunDecoder, TakesPassesAsTheyAreGiven) {
  EXPECT_EQ(with_off_passes({7}).off_state, with_off_passes({}).off_state);
  EXPECT_NE(with_off_passes({1, 1, 1, 1, 1, 1, 1}).off_state, with_off_passes({}).off_state);
  // Passes of cache-on, whose ones are a prefix and a token.
  const DecoderReport same = with_off_passes({6, 1});
  EXPECT_EQ(same.on_state, same.off_state);
  EXPECT_EQ(same.layers.back().on_off.l2, 0);
}

TEST(RunDecoder, RefusesPassesAndFactorsThatDoNotFit) {
  DecoderOptions options = options_of(small_shape(), "h100", "h100");
  for (const std::vector<std::int64_t>& passes :
       {std::vector<std::int64_t>{6}, {7, 1}, {8, -1}, {7, 0}}) {
    options.on_passes = passes;
    EXPECT_FALSE(run_decoder(options));
  }
  options.on_passes = {};
  options.branch_factors = {{1, 1}, {1, 1}};
  EXPECT_FALSE(run_decoder(options));
  options.branch_factors = {{1, 0}};
  EXPECT_FALSE(run_decoder(options));
}

// Weights of twice the size are exact, and so is the branch that they make: of attention, whose
// input is the same, and with norms behind the branches.
TEST(RunDecoder, BranchFactorsMakeBranchesLarger) {
  DecoderOptions options = in_binary32();
  const BranchSizes plain = run(options).layers.front().branches;
  EXPECT_GT(plain.attention, 0);
  EXPECT_GT(plain.mlp, 0);
  options.branch_factors = {{2, 1}};
  EXPECT_EQ(run(options).layers.front().branches.attention, 2 * plain.attention);
  options.branch_factors = {{1, 2}};
  const BranchSizes larger_mlp = run(options).layers.front().branches;
  EXPECT_EQ(larger_mlp.attention, plain.attention);
  EXPECT_EQ(larger_mlp.mlp, 2 * plain.mlp);

  // Of what every row has in common both get as much, and it makes the difference no larger.
  options.branch_factors = {{1, 1, 100}};
  const VectorDifference shifted = run(options).layers.front().on_off;
  const VectorDifference before_shift = with_off_passes({}).layers.front().on_off;
  EXPECT_NEAR(shifted.reference_l2 / std::sqrt(48.0), 100, 25);  // of 48 numbers of deviation 100
  EXPECT_LT(shifted.relative_l2, before_shift.relative_l2);

  DecoderOptions normed = options_of(full_shape(), "h100", "h100");
  const BranchSizes before = run(normed).layers.front().branches;
  normed.branch_factors = {{4, 1}, {1, 1}};
  // The weights 1 + w are rounded as numbers of another size: within 2^-8 of each.
  EXPECT_NEAR(run(normed).layers.front().branches.attention, 4 * before.attention,
              4 * before.attention * 0x1p-8);
}

}  // namespace
}  // namespace kvsim
