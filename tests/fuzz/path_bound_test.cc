// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/path_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/flip/mutate.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/score.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"
#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

// What is exact here is the double-double reference, which score_test.cc compares with MPFR.

/// The error of a path ÷ its bound; 0 where both are 0. Fails where it is above 1.
double closeness(const FlipScore& score, std::size_t path, const std::string& name) {
  const double error = std::abs(score.paths[path].difference - score.exact);
  EXPECT_LE(error, score.paths[path].bound + score.reference_error) << name;
  return error > 0 ? error / score.paths[path].bound : 0;
}

/// Scores far apart, usual, or close; values of both signs, or of one.
FlipCase random_case(const CaseShape& shape, std::uint64_t seed) {
  Random random({11, seed, 0});
  FlipCase result = ValueFitter(shape.storage).random_case(shape, random);
  const float factor = std::ldexp(1.0F, 2 - 2 * static_cast<int>(seed % 4));
  for (float& x : result[CaseTensor::q]) x *= factor;
  if (seed % 2 == 1) {
    for (float& x : result[CaseTensor::v]) x = std::abs(x);
  }
  if (seed % 8 > 4) {
    for (float& x : result[CaseTensor::tokens]) x = std::abs(x);
  }
  return result;
}

// Every kernel of the table in every storage, alone and split and as the last of many queries: each
// has a bound, and stays within.
TEST(PathBound, HoldsForEveryKernel) {
  for (const AttentionKernel& kernel : attention_kernels()) {
    const bool splits = kernel.tiles != nullptr && kernel.tiles->split.policy != SplitPolicy::never;
    for (const StorageSums& sums : kernel.storages) {
      CaseShape shape = attention_shape(32, 270, std::string(kernel.name), splits ? 3 : 0);
      shape.storage = sums.storage;
      shape.kernels[path_off].splits = 0;
      shape.kernels[path_off].prefill = kernel.family != AttentionFamily::paged;
      const std::string name =
          std::string(kernel.name) + ' ' + std::string(softfloat::format_name(sums.storage));
      const auto scorer = FlipScorer::make(shape);
      if (name == "torch-cpu-eager bfloat16") {
        ASSERT_FALSE(scorer);  // a unit that flushes subnormals, in blocks
        EXPECT_EQ(scorer.error().message,
                  "order blocks(512)/mma(x86.vdpbf16ps.bf16.f32): no bound on its error is known");
        continue;
      }
      ASSERT_TRUE(scorer) << name << ": " << scorer.error().message;
      double closest = 0;
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        const FlipScore score = scorer->score(random_case(shape, seed));
        if (!score.is_finite()) {  // scores so large that bfloat16 tells nothing of the weights
          EXPECT_EQ(seed % 4, 0U) << name;
          continue;
        }
        for (const std::size_t path : {path_on, path_off}) {
          closest = std::max(closest, closeness(score, path, name));
        }
      }
      EXPECT_GT(closest, 1e-3) << name;
    }
  }
}

// What the search comes by while it looks for large errors.
TEST(PathBound, HoldsForWhatTheSearchTries) {
  CaseShape mixed = attention_shape(16, 60, "control-attention", 0);
  mixed.storage = softfloat::binary32;
  mixed.kernels[path_off].kernel = "torch-cpu";
  CaseShape torch = attention_shape(16, 90, "torch-cpu", 0);
  torch.storage = softfloat::bfloat16;
  std::vector<CaseShape> shapes{mixed,
                                torch,
                                attention_shape(16, 300, "a100-fa2", 2),
                                attention_shape(32, 600, "h100-fa3", 4),
                                attention_shape(16, 300, "b200-fa4", 3),
                                attention_shape(16, 200, "h100-flashinfer", 2),
                                attention_shape(16, 150, "mi300-fa2", 0),
                                attention_shape(16, 130, "llama.cpp-cuda", 0),
                                attention_shape(16, 60, "llama.cpp-cpu", 0),
                                attention_shape(16, 90, "h100-eager-storage-softmax", 0)};
  // Alone and as the last of many these compute the same: beside another kernel.
  for (CaseShape& shape : shapes) {
    if (shape.kernels[path_on].splits == 0 && shape.storage == softfloat::binary16) {
      shape.kernels[path_off] = {"a100-fa2", false, 0};
    }
  }
  shapes.push_back(attention_shape(16, 530, "a100-vllm-v1", 0));
  shapes.back().kernels[path_off] = {"a100-vllm-v2", false, 0};
  for (const CaseShape& shape : shapes) {
    const auto scorer = FlipScorer::make(shape);
    ASSERT_TRUE(scorer) << shape.kernels[0].kernel << ": " << scorer.error().message;
    const ValueFitter fitter(shape.storage);
    const Mutator mutator(*scorer, fitter);
    Random random({5, 0, 0});
    double closest = 0;
    ScoredCase best;
    best.fitness = -1e300;
    for (int i = 0; i < 70; ++i) {
      ScoredCase next;
      const MutationWeights weights = swarm_weights(random);
      next.flip_case =
          i < 10 ? mutator.seed(random) : mutator.mutate(best, best.flip_case, weights, random);
      next.score = scorer->score(next.flip_case);
      if (!next.score.is_finite()) continue;
      double here = 0;
      for (const std::size_t path : {path_on, path_off}) {
        here = std::max(here, closeness(next.score, path, shape.kernels[path].kernel));
      }
      closest = std::max(closest, here);
      next.fitness = here;
      if (next.fitness > best.fitness) best = next;
    }
    EXPECT_GT(closest, 0.03) << shape.kernels[0].kernel;
  }
}

// Probabilities rounded to binary16 are what moves a difference to which each of them adds the way
// that it was rounded: half of what they may be off, on average, is what they are.
TEST(PathBound, IsCloseWhereProbabilitiesAreRounded) {
  constexpr std::int64_t keys = 120;
  CaseShape shape = attention_shape(16, keys, "a100-fa2", 1);
  shape.attention.query_heads = 1;
  const auto scorer = FlipScorer::make(shape);
  ASSERT_TRUE(scorer) << scorer.error().message;
  FlipCase c = empty_case(shape);
  // Scores k ÷ 4 for keys k ÷ 1024 · m.
  c[CaseTensor::q][0] = 1;
  c[CaseTensor::tokens][0] = 1;
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto key = static_cast<std::size_t>(j * 16);
    c[CaseTensor::k][key] = j == 0 ? 4.0F : 2.0F + static_cast<float>(j) / 64.0F;
    const double p = std::exp((static_cast<double>(c[CaseTensor::k][key]) - 4.0) / 4.0);
    const double rounded = softfloat::to_double(
        softfloat::binary16,
        softfloat::convert(softfloat::binary16, softfloat::binary64, softfloat::from_double(p))
            .bits);
    c[CaseTensor::v][key] = rounded > p ? 1.0F : -1.0F;
  }
  const FlipScore score = scorer->score(c);
  EXPECT_GT(closeness(score, path_on, "a100-fa2"), 0.35);
}

// The oracle is the C library's exponential in binary64.
TEST(PathBound, ExponentialsErrAsStated) {
  std::vector<float> x;
  for (double each = -86; each <= 0; each += 86.0 / 300'000) x.push_back(static_cast<float>(each));
  std::vector<float> result(x.size());
  for (const ExpModelRow& row : exp_models()) {
    const ExpFunction function(row.model);
    const bool two = row.base == ExpBase::two;
    two ? function.exp2(x, result) : function.exp(x, result);
    double largest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double argument = x[i];
      const double exact = two ? std::exp2(argument) : std::exp(argument);
      largest = std::max(largest, std::abs(static_cast<double>(result[i]) / exact - 1));
    }
    EXPECT_LE(largest, exponential_error(row.model) + 0x1.001p-24) << row.name;
    EXPECT_GE(largest, exponential_error(row.model) / 4) << row.name;
  }
}

TEST(PathBound, SaysWhatHasNone) {
  const CaseShape shape = attention_shape(64, 64, "h100-fa3", 1);
  AttentionProblem problem;
  problem.shape = shape.attention;
  problem.storage = softfloat::binary16;
  problem.mask.soft_cap = 30;
  const auto bound = PathBound::make(*find_attention_kernel("h100-fa3"), problem);
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().message,
            "attention kernel h100-fa3: no bound on its error is known (a window, a soft cap or "
            "padding)");
  problem.mask.soft_cap = 0;
  problem.launch.cpu_threads = 4;
  problem.shape.kv_len = 600;
  const auto threads = PathBound::make(*find_attention_kernel("llama.cpp-cpu"), problem);
  ASSERT_FALSE(threads);
  EXPECT_EQ(threads.error().message,
            "attention kernel llama.cpp-cpu: no bound on its error is known (how it merges "
            "threads)");
}

}  // namespace
}  // namespace kvsim::fuzz
