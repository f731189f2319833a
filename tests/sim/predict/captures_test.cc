// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Predictions on the attention layers of a real model.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "model/attention_tensors.h"
#include "sim/predict/prediction.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

std::vector<float> values(const CodeView& codes) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < codes.size(); ++i) {
    out.push_back(softfloat::to_float(codes.format(), codes[i]));
  }
  return out;
}

class Captures : public testing::TestWithParam<const char*> {};

// Attention with the errors of its storage format, controls at zero, and the causal structure: the
// first query sees one key, whose value is the output, so decode and prefill agree there.
TEST_P(Captures, ArePredicted) {
  const char* const shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const auto tensors =
      load_attention(std::string(shared) + "/data/qkv/qkv-" + GetParam() + ".safetensors");
  ASSERT_TRUE(tensors) << tensors.error().message;
  const AttentionSizes& sizes = tensors->sizes();
  AttentionNumbers numbers{
      {sizes.query_heads, sizes.kv_heads, sizes.query_len, sizes.kv_len, sizes.head_dim},
      values(tensors->q()),
      values(tensors->k()),
      values(tensors->v())};
  PredictionOptions options;
  options.device = find_dispatch("h100").value();
  options.decoder.query_heads = sizes.query_heads;
  options.decoder.kv_heads = sizes.kv_heads;
  options.decoder.head_dim = sizes.head_dim;
  options.decoder.hidden = 64;
  options.decoder.ffn = 64;
  options.decoder.layers = 1;
  options.storage = tensors->format();
  options.kv_len = sizes.kv_len;
  options.prefix = 2;
  options.trials = 50;
  options.margins = built_in_margins();
  options.captured = &numbers;
  const Result<Prediction> prediction = predict(options);
  ASSERT_TRUE(prediction) << prediction.error().message;
  EXPECT_TRUE(prediction->controls_passed);
  EXPECT_TRUE(prediction->exp_bounded);
  EXPECT_EQ(prediction->attention.positions, sizes.query_len);
  EXPECT_EQ(prediction->attention.difference.elements,
            sizes.query_heads * sizes.query_len * sizes.head_dim);
  for (const AttentionSide* side : {&prediction->attention.on, &prediction->attention.off}) {
    // One rounding of the output to binary16 gives 2.1e-4.
    EXPECT_GT(side->error.relative_l2, 1.5e-4);
    EXPECT_LT(side->error.relative_l2, 2e-3);
  }
  EXPECT_LT(prediction->attention.difference.share(), 0.5);
  EXPECT_EQ(prediction->grouped.group, 3);
  EXPECT_EQ(prediction->grouped.repeated.differing, 0);
}

INSTANTIATE_TEST_SUITE_P(Layers, Captures, testing::Values("L0", "L15", "L29"));

}  // namespace
}  // namespace kvsim
