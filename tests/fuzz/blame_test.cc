// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/blame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fuzz/flip/delta_debugging.h"
#include "fuzz/flip/mutate.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/search.h"
#include "sim/attention/kernel.h"
#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

std::vector<Rounding> decisive(const Blame& blame) {
  std::vector<Rounding> result;
  std::ranges::copy_if(blame.roundings, std::back_inserter(result), &Rounding::decisive);
  return result;
}

TEST(MinimalSubset, KeepsWhatIsNeeded) {
  for (const std::vector<int>& needed :
       {std::vector<int>{7}, {3, 17}, {0, 1, 39}, {5, 11, 20, 28}, {}}) {
    std::vector<int> all(40);
    std::iota(all.begin(), all.end(), 0);
    const auto found = minimal_subset(
        all, [&](const std::vector<int>& some) { return std::ranges::includes(some, needed); });
    if (needed.empty()) {
      EXPECT_EQ(found, std::vector<int>{0});
    } else {
      EXPECT_EQ(found, needed);
    }
  }
}

// Token 0 has 2048, 1 and −2048, exactly 1; token 1 has 0.5. In sequence 2048 + 1 is halfway to
// 2050 and ties to 2048, so that token 0 gets 0; 2048 − 2048 first, and it gets 1.
TEST(Blame, NamesTheOneAbsorption) {
  FlipCase flip_case = empty_case(sum_shape(3, "sequential", "perm(0,2,1)", softfloat::binary16));
  flip_case[CaseTensor::state] = {1, 1, 1};
  flip_case[CaseTensor::tokens] = {2048, 1, -2048, 0.5F, 0, 0};
  const auto scorer = FlipScorer::make(flip_case.shape);
  ASSERT_TRUE(scorer);
  const auto blamed = blame(*scorer, flip_case);
  ASSERT_TRUE(blamed) << blamed.error().message;
  EXPECT_EQ(blamed->path, path_on);
  EXPECT_EQ(blamed->error, -1);
  EXPECT_EQ(blamed->erring, 1);
  EXPECT_EQ(blamed->alone, 1);
  const std::vector<Rounding> found = decisive(*blamed);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place, "token 0, root/0");
  EXPECT_EQ(found[0].step, "term 0 + term 1");
  EXPECT_EQ(found[0].error_ulp, -0.5);
  EXPECT_EQ(found[0].effect, -1);
}

// Eight half ulps of 2^-11 are lost; token 0 is 2^-8 − 2^-10 ahead, so that two of them must come
// back for a tie, which token 0 wins.
TEST(Blame, TakesAsManyAsAreNeeded) {
  const FlipCase flip_case = planted_flip();
  const auto scorer = FlipScorer::make(flip_case.shape);
  ASSERT_TRUE(scorer);
  const auto blamed = blame(*scorer, flip_case);
  ASSERT_TRUE(blamed) << blamed.error().message;
  EXPECT_EQ(blamed->erring, 8);
  EXPECT_EQ(blamed->alone, 0);
  const std::vector<Rounding> found = decisive(*blamed);
  ASSERT_EQ(found.size(), 2U);
  for (const Rounding& rounding : found) {
    EXPECT_EQ(rounding.group, 0);
    EXPECT_EQ(rounding.effect, -0x1p-11);
    EXPECT_EQ(rounding.error_ulp, -0.5);
  }
}

/// What a blame promises, asked of the roundings themselves.
void check_promises(const FlipCase& flip_case) {
  const auto scorer = FlipScorer::make(flip_case.shape);
  ASSERT_TRUE(scorer);
  const auto blamed = blame(*scorer, flip_case);
  ASSERT_TRUE(blamed) << blamed.error().message;
  const auto model = flip_case.shape.kind == CaseKind::sum
                         ? sum_roundings(flip_case, blamed->path)
                         : attention_roundings(*scorer, flip_case, blamed->path);
  ASSERT_TRUE(model);
  const FlipScore score = scorer->score(flip_case);
  const auto token = [&](const std::vector<char>& exact) {
    return (*model)->difference(exact).high >= -1e-18 * std::abs(blamed->error) ? 0 : 1;
  };
  std::vector<char> exact(blamed->roundings.size());
  EXPECT_EQ(token(exact), score.paths[blamed->path].token());
  const int right = score.exact >= 0 ? 0 : 1;
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] = blamed->roundings[i].decisive ? 1 : 0;
  EXPECT_EQ(token(exact), right);
  double total = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    total += blamed->roundings[i].effect;
    if (!blamed->roundings[i].decisive) continue;
    exact[i] = 0;
    EXPECT_NE(token(exact), right) << blamed->roundings[i].place;
    exact[i] = 1;
  }
  // To first order effects add up to the whole error; of sums exactly.
  const double slack = flip_case.shape.kind == CaseKind::sum ? 1e-12 : 0.05;
  EXPECT_NEAR(total, blamed->error, slack * std::abs(blamed->error));
}

/// One kernel that meets the query alone against another one.
CaseShape two_kernels(std::int64_t keys, const std::string& on, const std::string& off,
                      const softfloat::Format& storage = softfloat::binary16) {
  CaseShape shape = attention_shape(32, keys, on, 0);
  shape.storage = storage;
  shape.kernels[path_off] = {off, false, 0};
  return shape;
}

TEST(Blame, OfFlipsBetweenEveryFamilyIsMinimalAndAddsUp) {
  const auto always = [](std::int64_t) { return true; };
  for (const CaseShape& shape : {
           two_kernels(70, "a100-vllm-v1", "control-attention-exact"),
           two_kernels(560, "a100-vllm-v2", "control-attention-exact"),
           two_kernels(40, "llama.cpp-cpu", "control-attention-exact"),
           two_kernels(70, "torch-cpu", "control-attention-exact", softfloat::bfloat16),
           two_kernels(70, "torch-cpu-eager", "torch-cpu-avx2", softfloat::binary32),
           two_kernels(70, "a100-eager-sqrt", "control-attention-exact"),
       }) {
    SCOPED_TRACE(shape.kernels[path_on].kernel);
    const auto scorer = FlipScorer::make(shape);
    ASSERT_TRUE(scorer) << scorer.error().message;
    FlipSearch search(*scorer, {.seed = 0, .islands = 2, .threads = 2});
    search.run(120, always);
    const auto found = search.confirmed();
    ASSERT_TRUE(found);
    check_promises(found->find.scored.flip_case);
  }
}

TEST(Blame, OfFoundFlipsIsMinimalAndAddsUp) {
  const auto always = [](std::int64_t) { return true; };
  std::vector<CaseShape> shapes{
      sum_shape(16, "sequential", "pairwise", softfloat::binary16),
      sum_shape(24, "split(3,partials=fp16)/pairwise", "exact", softfloat::binary32),
      sum_shape(32, "mma(a100.f16.f32)", "pairwise", softfloat::binary32),
      attention_shape(8, 140, "a100-fa2", 2),
      attention_shape(8, 100, "h100-fa3", 1),
  };
  shapes[1].product = Product::fused;
  shapes[4].kernels[path_off].kernel = "a100-eager";
  for (const CaseShape& shape : shapes) {
    SCOPED_TRACE(testing::PrintToString(shape.kind) + to_string(shape.orders[0]));
    const auto scorer = FlipScorer::make(shape);
    ASSERT_TRUE(scorer) << scorer.error().message;
    FlipSearch search(*scorer, {.seed = 0, .islands = 2, .threads = 2});
    search.run(shape.kind == CaseKind::sum ? 1500 : 120, always);
    const auto found = search.confirmed();
    ASSERT_TRUE(found);
    check_promises(found->find.scored.flip_case);
  }
}

// All scores are 0, so every probability is the same. V holds 2^15, its negative and 2^-10.
// FlashAttention-2 takes the block of keys 128..255 first, and 2^-10 with it; 2^15 of the other
// block's first instruction swallows it, and −2^15 leaves 0. Eager attention goes from the first
// key to the last: 2^15 and its negative are gone when 2^-10 comes. Token 1 is 2^-18 ahead.
TEST(Blame, NamesTheOneInstructionOfAnAttentionKernel) {
  CaseShape shape = attention_shape(8, 256, "a100-fa2", 1);
  shape.attention.query_heads = 1;
  shape.kernels[path_off] = {"a100-eager", false, 0};
  FlipCase flip_case = empty_case(shape);
  flip_case[CaseTensor::v][0] = 0x1p+15F;
  flip_case[CaseTensor::v][40 * 8] = -0x1p+15F;
  flip_case[CaseTensor::v][200 * 8] = 0x1p-10F;
  flip_case[CaseTensor::tokens][8] = 1;
  const auto scorer = FlipScorer::make(shape);
  ASSERT_TRUE(scorer) << scorer.error().message;
  const auto blamed = blame(*scorer, flip_case);
  ASSERT_TRUE(blamed) << blamed.error().message;
  EXPECT_EQ(blamed->path, path_on);
  EXPECT_EQ(blamed->error, 0x1p-18);
  EXPECT_EQ(blamed->erring, 1);
  EXPECT_EQ(blamed->alone, 1);
  const std::vector<Rounding> found = decisive(*blamed);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place, "query head 0, keys 0..15");
  EXPECT_EQ(found[0].step, "P·V");
  EXPECT_EQ(found[0].error_ulp, -0x1p-10 / 0x1p-8);
}

/// The steps of a path that have an error.
std::set<std::string> erring_steps(const RoundingModel& model) {
  std::set<std::string> steps;
  for (const Rounding& rounding : model.roundings()) {
    if (rounding.error_ulp != 0) steps.insert(rounding.step);
  }
  return steps;
}

// Every kernel of the table in every storage, alone and split and as the last of many queries: the
// steps that it shows, each with its error, give the kernel's own bits, and without errors the
// exact result, which score_test.cc compares with MPFR.
TEST(Blame, StepsOfEveryKernelGiveItsBits) {
  for (const AttentionKernel& kernel : attention_kernels()) {
    const bool splits = kernel.tiles != nullptr && kernel.tiles->split.policy != SplitPolicy::never;
    for (const StorageSums& sums : kernel.storages) {
      const std::string name =
          std::string(kernel.name) + ' ' + std::string(softfloat::format_name(sums.storage));
      SCOPED_TRACE(name);
      CaseShape shape = attention_shape(32, 600, std::string(kernel.name), splits ? 3 : 0);
      shape.storage = sums.storage;
      shape.kernels[path_off].splits = 0;
      shape.kernels[path_off].prefill = kernel.family != AttentionFamily::paged;
      const auto scorer = FlipScorer::make(shape);
      if (name == "torch-cpu-eager bfloat16") continue;  // has no bound, so that it is no path
      ASSERT_TRUE(scorer) << scorer.error().message;
      Random random({12, 1, 0});
      const FlipCase flip_case = ValueFitter(shape.storage).random_case(shape, random);
      const FlipScore score = scorer->score(flip_case);
      for (const std::size_t path : {path_on, path_off}) {
        const auto model = attention_roundings(*scorer, flip_case, path);
        ASSERT_TRUE(model) << model.error().message;
        const std::size_t count = (*model)->roundings().size();
        const double error = score.paths[path].difference - score.exact;
        EXPECT_NE(error, 0);
        // Scores are one double, which the sums of the steps are more precise than.
        const double slack = 0x1p-40 * std::abs(error) + 0x1p-52 * std::abs(score.exact);
        const DoubleDouble own = (*model)->difference(std::vector<char>(count));
        EXPECT_NEAR((own - score.paths[path].difference).high, 0, slack);
        const DoubleDouble exact = (*model)->difference(std::vector<char>(count, 1));
        EXPECT_NEAR((exact - score.exact).high, 0, slack + score.reference_error);
        EXPECT_GE(erring_steps(**model).size(), 2U);
      }
    }
  }
}

/// The steps that have an error where a kernel meets random numbers alone. Keys from 512 on are
/// larger, so that the maximum rises there.
std::set<std::string> steps_of(const std::string& kernel, const softfloat::Format& storage) {
  const CaseShape shape = two_kernels(600, kernel, kernel, storage);
  const auto scorer = FlipScorer::make(shape);
  EXPECT_TRUE(scorer) << scorer.error().message;
  Random random({12, 2, 0});
  FlipCase flip_case = ValueFitter(shape.storage).random_case(shape, random);
  for (float& x : std::span(flip_case[CaseTensor::k]).subspan(std::size_t{512} * 32)) x *= 4;
  const auto model = attention_roundings(*scorer, flip_case, path_on);
  EXPECT_TRUE(model) << model.error().message;
  return erring_steps(**model);
}

TEST(Blame, TellsTheStepsOfAFamilyApart) {
  using softfloat::bfloat16;
  using softfloat::binary16;
  using softfloat::binary32;
  const std::set<std::string> paged{"q·k",
                                    "scores scaled",
                                    "row sum",
                                    "exponents",
                                    "2^x",
                                    "P divided and rounded to binary16",
                                    "P·V",
                                    "output of the split rounded to binary16",
                                    "output rounded to binary16",
                                    "merge of splits"};
  EXPECT_EQ(steps_of("a100-vllm-v2", binary16), paged);
  const std::set<std::string> torch{"q·k",
                                    "scores scaled",
                                    "exponents",
                                    "e^x",
                                    "row sum",
                                    "P rounded to bfloat16",
                                    "rescaling",
                                    "P·V",
                                    "division by the row sum",
                                    "output rounded to bfloat16"};
  EXPECT_EQ(steps_of("torch-cpu", bfloat16), torch);
  const std::set<std::string> llama{
      "q·k",     "scores scaled", "exponents", "e^x",
      "row sum", "rescaling",     "P·V",       "division by the row sum"};
  EXPECT_EQ(steps_of("llama.cpp-cpu", binary16), llama);
  const std::set<std::string> eager{"q·k", "scores scaled and rounded to binary32",
                                    "softmax rounded to binary32", "P·V"};
  EXPECT_EQ(steps_of("torch-cpu-eager", binary32), eager);
  EXPECT_TRUE(steps_of("a100-eager-sqrt", binary16)
                  .contains("q and k scaled and rounded to binary16, on q·k"));
}

/// Scores are all 0, and the first values of the keys are these; token 1 has the row (1, 0, …), so
/// that it is ahead by their mean. The other path sums exactly.
FlipCase values_flip(const std::string& kernel, const softfloat::Format& storage,
                     const std::vector<float>& values) {
  CaseShape shape = two_kernels(std::ssize(values), kernel, "control-attention-exact", storage);
  shape.attention.query_heads = 1;
  FlipCase flip_case = empty_case(shape);
  for (std::size_t key = 0; key < values.size(); ++key) {
    flip_case[CaseTensor::v][key * 32] = values[key];
  }
  flip_case[CaseTensor::tokens][32] = 1;
  return flip_case;
}

void expect_one_cause(const FlipCase& flip_case, const std::string& place) {
  const auto scorer = FlipScorer::make(flip_case.shape);
  ASSERT_TRUE(scorer) << scorer.error().message;
  const auto blamed = blame(*scorer, flip_case);
  ASSERT_TRUE(blamed) << blamed.error().message;
  EXPECT_EQ(blamed->path, path_on);
  EXPECT_EQ(blamed->alone, 1);
  const std::vector<Rounding> found = decisive(*blamed);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place, place);
  EXPECT_EQ(found[0].step, "P·V");
}

// llama.cpp rounds its output to binary16 after every key: 2048 + 1 ties to 2048, and −2048 leaves
// 0. vLLM's thread adds its even keys in binary16, of which each counts for a quarter: the same.
// PyTorch adds one key after the other in binary32: 2^24 + 1 ties to 2^24.
TEST(Blame, NamesTheOneSumOfOtherFamilies) {
  expect_one_cause(values_flip("llama.cpp-cpu", softfloat::binary16, {2048, 1, -2048}),
                   "query head 0, keys 1..1");
  expect_one_cause(
      values_flip("a100-vllm-v1", softfloat::binary16, {8192, 0, 4, 0, -8192, 0, 0, 0}),
      "query head 0, keys 0..7");
  expect_one_cause(values_flip("torch-cpu", softfloat::binary32, {0x1p+24F, 1, -0x1p+24F}),
                   "query head 0, keys 0..2");
}

TEST(Blame, NeedsAFlip) {
  FlipCase even = planted_flip();
  for (float& x : even[CaseTensor::tokens]) x = 1;
  const auto scorer = FlipScorer::make(even.shape);
  ASSERT_TRUE(scorer);
  EXPECT_EQ(blame(*scorer, even).error().kind, ErrorKind::cannot_tell);
}

}  // namespace
}  // namespace kvsim::fuzz
