// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "softfloat/formats.h"
#include "tests/sim/decoder/tiny_model.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;

std::vector<OperatorChoice> explained(const DecoderShape& shape, const DispatchChoice& dispatch,
                                      const PassSizes& pass) {
  const auto list = operator_choices(shape, dispatch, bfloat16, pass);
  EXPECT_TRUE(list) << list.error().message;
  return list ? *list : std::vector<OperatorChoice>{};
}

const OperatorChoice& named(const std::vector<OperatorChoice>& list, std::string_view operation) {
  const auto found = std::ranges::find(list, operation, &OperatorChoice::operation);
  EXPECT_NE(found, list.end()) << operation;
  return found == list.end() ? list.front() : *found;
}

DecoderShape smollm2() {
  DecoderShape shape = test::tiny_shape();
  shape.layers = 30;
  shape.hidden = 576;
  shape.ffn = 1536;
  shape.query_heads = 9;
  shape.kv_heads = 3;
  shape.head_dim = 64;
  shape.vocabulary = 49152;
  return shape;
}

TEST(Explain, NamesTheKernelOfEveryOperator) {
  const DispatchChoice h100 = DispatchChoice::named("h100-fa3").value();
  const auto prefill = explained(smollm2(), h100, {.cached = 0, .rows = 200});
  const auto decode = explained(smollm2(), h100, {.cached = 200, .rows = 1});
  EXPECT_EQ(prefill.size(), decode.size());
  EXPECT_EQ(named(prefill, "gate").shape, "200 × 576 × 1536");
  EXPECT_EQ(named(prefill, "gate").kernel, "h100-gemm");
  EXPECT_EQ(named(prefill, "gate").line, "linear.m65+");
  EXPECT_EQ(named(prefill, "gate").detail, "mma(h100.wgmma.bf16.f32)");
  EXPECT_EQ(named(decode, "gate").kernel, "h100-gemv");
  EXPECT_EQ(named(decode, "gate").line, "linear.m1");
  EXPECT_EQ(named(decode, "logits").shape, "1 × 576 × 49152");
  EXPECT_EQ(named(prefill, "logits").kernel, "h100-gemv");  // of the last row
  EXPECT_EQ(named(decode, "attention").shape, "1 query × 201 keys, 9 heads of 64 on 3");
  EXPECT_EQ(named(decode, "attention").line, "attention.decode");
  EXPECT_EQ(named(prefill, "attention").line, "attention.prefill");
  // Neighbours make a matrix of a vector.
  const auto batched =
      explained(smollm2(), h100,
                {.cached = 200, .rows = 1, .launch = {.batch = 8, .kv_lens = {}, .rows = 0}});
  EXPECT_EQ(named(batched, "down").kernel, "h100-splitk");
  EXPECT_EQ(named(batched, "down").shape, "8 × 1536 × 576");
}

TEST(Explain, WindowsAndNormsOfTheShapeAreListed) {
  const auto list = explained(test::full_shape(), DispatchChoice::named("a100-fa2").value(),
                              {.cached = 9, .rows = 1});
  EXPECT_EQ(named(list, "attention (window 5)").kernel, "a100-fa2");
  EXPECT_EQ(named(list, "attention").kernel, "a100-fa2");
  EXPECT_EQ(named(list, "key norm").shape, "2 × 16");
  EXPECT_EQ(named(list, "mlp post norm").line, "norm.plus-one");
  EXPECT_EQ(named(list, "activation").line, "gelu-tanh");
}

// Changing the line that an operator names changes this operator, and only those of the same line.
TEST(Explain, MarksWhatDiffers) {
  const DispatchChoice h100 = DispatchChoice::named("h100-fa3").value();
  const PassSizes pass{.cached = 50, .rows = 1};
  const auto before = explained(test::full_shape(), h100, pass);
  for (const auto& [line, value] : {std::pair{"linear.m1", "gemv.lanes(32,4)"},
                                    {"attention.decode", "fa2.split8"},
                                    {"norm.plus-one", "control-rms-gemma"},
                                    {"gelu-tanh", "control-gelu-tanh"}}) {
    DispatchChoice changed = h100;
    ASSERT_TRUE(changed.set(line, value));
    const auto pairs = operator_pairs(before, explained(test::full_shape(), changed, pass));
    EXPECT_EQ(pairs.size(), before.size());
    for (const OperatorPair& pair : pairs) {
      EXPECT_EQ(pair.first.operation, pair.second.operation);
      EXPECT_EQ(pair.differs, pair.first.line == line) << pair.first.operation << " " << line;
    }
  }
  DispatchChoice narrow = h100;
  ASSERT_TRUE(narrow.set("format.accumulator", "binary16"));
  const auto sums = operator_choices(test::tiny_shape(), narrow, bfloat16, pass).value();
  EXPECT_EQ(named(sums, "down").detail, "lanes(32,1,join=butterfly), sums in binary16");
  const auto wide = explained(test::full_shape(), DispatchChoice::named("binary64").value(), pass);
  ASSERT_EQ(wide.size(), 1U);
  const auto pairs = operator_pairs(before, wide);
  EXPECT_EQ(pairs.size(), before.size());
  EXPECT_TRUE(std::ranges::all_of(pairs, &OperatorPair::differs));
}

// A linear layer sums in the format that holds its weights and what they multiply.
TEST(Explain, KnowsTheFormatOfTheWeights) {
  const test::TinyModel model(test::tiny_shape(), softfloat::binary32);
  DispatchChoice h100 = DispatchChoice::named("h100-fa3").value();
  const PassSizes pass{.cached = 5, .rows = 1, .launch = {}, .weights = &model.weights()};
  EXPECT_EQ(named(explained(model.shape(), h100, pass), "down").detail,
            "lanes(32,1,join=butterfly), binary32 to bfloat16");
  EXPECT_EQ(named(explained(model.shape(), h100, pass), "logits").detail,
            "lanes(32,1,join=butterfly), binary32 to bfloat16");
  ASSERT_TRUE(h100.set("format.weights", "bfloat16"));
  EXPECT_EQ(named(explained(model.shape(), h100, pass), "down").detail,
            "lanes(32,1,join=butterfly)");
}

TEST(Explain, RefusesWhatCannotRun) {
  DispatchChoice h100 = DispatchChoice::named("h100-fa3").value();
  EXPECT_FALSE(operator_choices(test::tiny_shape(), h100, softfloat::binary32, {}));
  EXPECT_FALSE(operator_choices(test::tiny_shape(), h100, bfloat16, {.cached = 0, .rows = 0}));
  EXPECT_FALSE(operator_choices(test::tiny_shape(), h100, softfloat::e5m2, {}));
}

}  // namespace
}  // namespace kvsim
