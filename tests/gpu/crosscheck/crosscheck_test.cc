// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/crosscheck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/crosscheck/check_data.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// A linear layer in a plain loop of products and sums, but for one output that takes two of its
/// terms in the other order.
class PlainLoop final : public Backend {
 public:
  explicit PlainLoop(std::int64_t swapped) : swapped_(swapped) {}
  [[nodiscard]] std::string name() const override { return "plain"; }
  [[nodiscard]] Fingerprint fingerprint() const override { return {}; }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    return {{"linear", {"binary32"}, ""}};
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    ++runs;
    if (call.operation != "linear") return Error{ErrorKind::unavailable, "plain: linear only"};
    const Tensor& x = call.inputs[0];
    const Tensor& w = call.inputs[1];
    Tensor out{.format = x.format, .shape = {x.shape[0], w.shape[0]}};
    const std::int64_t terms = x.shape[1];
    for (std::int64_t i = 0; i < x.shape[0]; ++i) {
      for (std::int64_t j = 0; j < w.shape[0]; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < terms; ++k) {
          const std::int64_t at = j == swapped_ && (k == 3 || k == 50) ? 53 - k : k;
          // The replaced order of the kernel rounds its products.
          const float product = x.values[static_cast<std::size_t>(i * terms + at)] *
                                w.values[static_cast<std::size_t>(j * terms + at)];
          sum += product;
        }
        out.values.push_back(sum);
      }
    }
    return out;
  }
  [[nodiscard]] Result<bool> set_threads(std::int64_t) override { return true; }

  int runs = 0;

 private:
  std::int64_t swapped_;
};

Check linear() {
  return {.label = "layer",
          .operation = "linear",
          .format = softfloat::binary32,
          .rows = 5,
          .outputs = 40,
          .terms = 100};
}

std::unique_ptr<Simulation> sequential() {
  auto dispatch = DispatchChoice::named("torch-cpu-avx2");
  EXPECT_TRUE(dispatch);
  EXPECT_TRUE(dispatch->set("linear", "torch-cpu-avx2-linear.sequential"));
  return named_simulation(std::move(*dispatch));
}

TEST(Crosscheck, FindsNothingWhereTheOrderIsTheSame) {
  for (const CheckData data : {CheckData::gaussian, CheckData::cancel}) {
    PlainLoop backend(-1);
    const auto inputs = check_data(linear(), data, 1);
    ASSERT_TRUE(inputs) << inputs.error().message;
    const auto outcome = compare_check(backend, *sequential(), linear(), *inputs);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->compared, 200);
    EXPECT_EQ(outcome->different, 0);
    EXPECT_EQ(outcome->first, -1);
    EXPECT_TRUE(outcome->suspect.empty());
    EXPECT_FALSE(outcome->failing);
  }
}

TEST(Crosscheck, NamesTheOutputThatIsSummedOtherwiseAndMakesItSmall) {
  PlainLoop backend(17);
  const auto inputs = check_data(linear(), CheckData::cancel, 1);
  ASSERT_TRUE(inputs) << inputs.error().message;
  const auto outcome = compare_check(backend, *sequential(), linear(), *inputs);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_GE(outcome->different, 1);
  EXPECT_LE(outcome->different, 5);  // one output of each row
  EXPECT_EQ(outcome->first % 40, 17);
  EXPECT_EQ(outcome->suspect, "outputs 17 of 40");
  ASSERT_TRUE(outcome->failing);
  EXPECT_LE(outcome->failing->numbers.size(), 16U);
  EXPECT_LE(backend.runs, 4002);
  // The small case is a case: what it says is what the back end gives for it.
  std::vector<Tensor> small = *inputs;
  for (Tensor& tensor : small) tensor.values.assign(tensor.values.size(), 0.0F);
  std::vector<bool> has_term(100);
  for (const FailingNumber& number : outcome->failing->numbers) {
    small[number.input].values[static_cast<std::size_t>(number.index)] = number.value;
    has_term[static_cast<std::size_t>(number.index % 100)] = true;
  }
  EXPECT_TRUE(has_term[3] || has_term[50]);
  const auto seen = backend.run({"linear", small, {}});
  ASSERT_TRUE(seen);
  const auto at = static_cast<std::size_t>(outcome->failing->index);
  EXPECT_EQ(seen->values[at], outcome->failing->seen);
  EXPECT_NE(outcome->failing->seen, outcome->failing->simulated);
}

TEST(Crosscheck, SaysWhatABackEndOrADispatchLacks) {
  PlainLoop backend(-1);
  Check softmax = linear();
  softmax.operation = "softmax";
  const auto inputs = check_data(softmax, CheckData::gaussian, 1);
  ASSERT_TRUE(inputs);
  const auto lacking = compare_check(backend, *sequential(), softmax, *inputs);
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().kind, ErrorKind::unavailable);

  auto fa2 = DispatchChoice::named("h100");
  ASSERT_TRUE(fa2);
  Check sum = linear();
  sum.operation = "sum";
  const auto none = compare_check(backend, *named_simulation(std::move(*fa2)), sum, *inputs);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "h100 has no kernel for sum in binary32");
}

TEST(CheckData, CancelsInPairs) {
  const auto inputs = check_data(linear(), CheckData::cancel, 3);
  ASSERT_TRUE(inputs);
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t output = 0; output < 40; ++output) {
      // Products of two floats are exact in binary64, and pairs of them cancel to 0 in any order.
      std::vector<double> products;
      for (std::size_t k = 0; k < 100; ++k) {
        products.push_back(static_cast<double>((*inputs)[0].values[row * 100 + k]) *
                           static_cast<double>((*inputs)[1].values[output * 100 + k]));
      }
      std::sort(products.begin(), products.end());
      for (std::size_t k = 0; k < 50; ++k) ASSERT_EQ(products[k], -products[99 - k]);
    }
  }
}

TEST(ModelChecks, AreThoseOfTheShape) {
  DecoderShape shape;
  shape.hidden = 128;
  shape.ffn = 320;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 32;
  shape.vocabulary = 5003;
  const auto checks = model_checks(shape, softfloat::bfloat16, {});
  int linear_checks = 0;
  for (const Check& check : checks) {
    if (check.operation != "linear") continue;
    ++linear_checks;
    // 5003 = 64 · 78 + 11; cut to 4096 with the same rest
    if (check.label == "head") {
      EXPECT_EQ(check.outputs, 4096 + 11);
    }
  }
  EXPECT_EQ(linear_checks, 5 * 4);  // query and output have one shape
  for (const std::string_view operation : check_operations()) {
    const bool is_there = std::any_of(checks.begin(), checks.end(), [&](const Check& check) {
      return check.operation == operation;
    });
    EXPECT_EQ(is_there, operation != "gelu-tanh") << operation;
  }
}

}  // namespace
}  // namespace kvsim::gpu
