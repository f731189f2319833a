// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/output_head.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <string>
#include <vector>

#include "fuzz/flip/confirm.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/search.h"
#include "sim/sum.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/fuzz/cases.h"

namespace kvsim::fuzz {
namespace {

constexpr std::int64_t terms = 96;

std::vector<float> numbers(std::int64_t count, CaseTensor tensor, Random& random,
                           const softfloat::Format& storage) {
  const ValueFitter fitter(storage);
  std::vector<float> result(static_cast<std::size_t>(count));
  random.gaussians(result);
  for (float& x : result) x = fitter.fit(tensor, 0.7 * static_cast<double>(x));
  return result;
}

/// Σ a (first − second), good to far more than a double.
double exact_difference(const std::vector<float>& state, const std::vector<float>& tokens) {
  mpfr_t sum;
  mpfr_t product;
  mpfr_init2(sum, 400);
  mpfr_init2(product, 400);
  mpfr_set_zero(sum, 1);
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    const float a = state[k % state.size()];
    mpfr_set_flt(product, k < state.size() ? a : -a, MPFR_RNDN);
    mpfr_mul_d(product, product, static_cast<double>(tokens[k]), MPFR_RNDN);
    mpfr_add(sum, sum, product, MPFR_RNDN);
  }
  const double result = mpfr_get_d(sum, MPFR_RNDN);
  mpfr_clear(sum);
  mpfr_clear(product);
  return result;
}

// The oracle is softfloat, node by node of the order, and its conversion to the storage format.
TEST(OutputHead, LogitsAreTheKernels) {
  const softfloat::Format storage = softfloat::binary16;
  Random random({1, 0, 0});
  const std::vector<float> state = numbers(terms, CaseTensor::v, random, storage);
  const std::vector<float> tokens = numbers(2 * terms, CaseTensor::tokens, random, storage);
  const auto codes = [&](std::span<const float> values) {
    std::vector<softfloat::Bits> result;
    for (const float x : values) {
      result.push_back(
          softfloat::convert(storage, softfloat::binary32, softfloat::from_float(x)).bits);
    }
    return result;
  };
  for (const std::string name : {"h100-gemv", "h100-gemm", "control-linear"}) {
    const LinearKernel& kernel = *find_linear_kernel(name);
    const auto head =
        OutputHead::make(name, {.storage = storage, .terms = terms, .launch_rows = 200});
    ASSERT_TRUE(head) << name << ": " << head.error().message;
    const auto plan = plan_linear(kernel, {.rows = 200,
                                           .outputs = head_outputs,
                                           .terms = terms,
                                           .storage = storage,
                                           .multiprocessors = 132});
    ASSERT_TRUE(plan);
    const auto logits = head->logits(state, tokens);
    for (std::size_t token = 0; token < 2; ++token) {
      const auto sum = sum_products(plan->columns[0].order, plan->rule->product, storage,
                                    plan->rule->accumulator, codes(state),
                                    codes(std::span(tokens).subspan(token * terms, terms)));
      const double expected = softfloat::to_double(
          plan->output, softfloat::convert(plan->output, plan->rule->accumulator, sum.bits).bits);
      EXPECT_EQ(logits[token], expected) << name;
    }
  }
}

// The oracle is MPFR.
TEST(OutputHead, BoundsHoldForEveryLinearKernel) {
  int known = 0;
  for (const LinearKernel& kernel : linear_kernels()) {
    for (const softfloat::Format& storage :
         {softfloat::binary16, softfloat::bfloat16, softfloat::binary32}) {
      const auto head = OutputHead::make(kernel.name, {storage, terms, 1});
      if (!head) continue;
      ++known;
      double closest = 0;
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        Random random({2, seed, 0});
        std::vector<float> state = numbers(terms, CaseTensor::v, random, storage);
        std::vector<float> tokens = numbers(2 * terms, CaseTensor::tokens, random, storage);
        if (seed % 3 == 1) {  // one sign
          for (float& x : state) x = std::abs(x);
          for (float& x : tokens) x = std::abs(x);
        }
        const auto logits = head->logits(state, tokens);
        const double error = std::abs(logits[0] - logits[1] - exact_difference(state, tokens));
        const double bound = head->bound(state, tokens, logits);
        EXPECT_LE(error, bound * (1 + 0x1p-40)) << kernel.name;
        closest = std::max(closest, error / bound);
      }
      EXPECT_GT(closest, 0.005) << kernel.name;
    }
  }
  EXPECT_GT(known, 20);
}

// Two launches whose attention has equal bits, with heads that sum in other formats.
TEST(OutputHead, FlipsAreFound) {
  CaseShape shape = attention_shape(16, 40, "h100-fa3", 1);
  shape.kernels[path_on].head = "h100-gemm-f16-sums";
  shape.kernels[path_off].head = "h100-gemm";
  const auto scorer = FlipScorer::make(shape);
  ASSERT_TRUE(scorer) << scorer.error().message;
  EXPECT_EQ(scorer->path_name(path_off),
            "h100-fa3, last of 40 queries, not split, logits by h100-gemm");
  FlipSearch search(*scorer, {.seed = 1, .islands = 2});
  search.run(600, [](std::int64_t) { return true; });
  const auto found = search.confirmed();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->confirmation.flips());
  EXPECT_LE(found->confirmation.margin(), found->find.scored.score.bound());
  const std::string text = to_text(found->find.scored.flip_case);
  EXPECT_NE(text.find("\non-head h100-gemm-f16-sums\noff-head h100-gemm\nq\n"), std::string::npos);
  const auto read = parse_case(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, found->find.scored.flip_case);
}

TEST(OutputHead, SaysWhatItDoesNotTake) {
  const auto unknown = OutputHead::make("no-such", {softfloat::binary16, 4, 1});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "linear kernel 'no-such': unknown; kvsim kernels lists those that are accepted");
  CaseShape shape = attention_shape(16, 40, "llama.cpp-cuda", 0);
  shape.kernels[path_on].head = "h100-gemv";
  const auto scorer = FlipScorer::make(shape);
  ASSERT_FALSE(scorer);
  EXPECT_EQ(scorer.error().message,
            "attention kernel llama.cpp-cuda: its outputs are no numbers of binary16, so that no "
            "linear kernel takes them");
}

}  // namespace
}  // namespace kvsim::fuzz
