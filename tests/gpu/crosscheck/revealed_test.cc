// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/revealed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/crosscheck/check_data.h"
#include "gpu/crosscheck/crosscheck.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// What a norm is made of, in plain loops: means of four partial sums, and, in one row, of one.
class PlainSteps final : public Backend {
 public:
  explicit PlainSteps(std::optional<std::size_t> odd_row) : odd_row_(odd_row) {}
  [[nodiscard]] std::string name() const override { return "plain"; }
  [[nodiscard]] Fingerprint fingerprint() const override { return {}; }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override { return {}; }
  [[nodiscard]] Result<bool> set_threads(std::int64_t) override { return true; }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    Tensor out = call.inputs[0];
    if (call.operation == "mean") {
      out.shape.pop_back();
      out.values.clear();
      const auto terms = static_cast<std::size_t>(call.inputs[0].shape.back());
      for (std::size_t at = 0; at < call.inputs[0].values.size(); at += terms) {
        const auto first = call.inputs[0].values.begin() + static_cast<std::ptrdiff_t>(at);
        const std::vector<float> row(first, first + static_cast<std::ptrdiff_t>(terms));
        out.values.push_back(sum(row, at / terms == odd_row_) / static_cast<float>(terms));
      }
      return out;
    }
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      float& x = out.values[i];
      if (call.operation == "mul") x *= call.inputs[1].values[i];
      if (call.operation == "add") x += call.inputs[1].values[i];
      if (call.operation == "rsqrt") x = 1 / std::sqrt(x);
      x = rounded(out.format, x);
    }
    return out;
  }

 private:
  static float rounded(const softfloat::Format& format, float x) {
    const auto code = std::bit_cast<std::uint32_t>(x);
    const auto bits = softfloat::convert(format, softfloat::binary32, code).bits;
    const auto back = softfloat::convert(softfloat::binary32, format, bits).bits;
    return std::bit_cast<float>(static_cast<std::uint32_t>(back));
  }
  static float sum(const std::vector<float>& row, bool is_odd) {
    float lanes[4] = {0, 0, 0, 0};
    for (std::size_t i = 0; i < row.size(); ++i) lanes[is_odd ? 0 : i % 4] += row[i];
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  }

  std::optional<std::size_t> odd_row_;
};

Check norm() {
  return {.label = "norm",
          .operation = "rms-norm",
          .format = softfloat::binary32,
          .rows = 6,
          .terms = 32};
}

Result<CheckOutcome> outcome_of(Backend& backend, const Check& check) {
  const auto simulation = revealed_simulation(backend, {.least_outputs = 1000});
  const auto inputs = check_data(check, CheckData::gaussian, 1);
  if (!inputs) return inputs.error();
  return compare_check(backend, *simulation, check, *inputs);
}

TEST(Revealed, NormsAreThatOfTheirSteps) {
  for (const softfloat::Format& format : {softfloat::binary32, softfloat::bfloat16}) {
    for (const bool plus_one : {false, true}) {
      for (const bool has_weight : {false, true}) {
        PlainSteps backend(std::nullopt);
        Check check = norm();
        check.format = format;
        check.plus_one = plus_one;
        check.has_weight = has_weight;
        const auto outcome = outcome_of(backend, check);
        ASSERT_TRUE(outcome) << outcome.error().message;
        EXPECT_EQ(outcome->kernel, "lanes(4,1,join=halving)");
        EXPECT_EQ(outcome->compared, 6 * 32);
        EXPECT_EQ(outcome->different, 0);
      }
    }
  }
}

// Five rows have one order and one has another: what is revealed of the five does not give the one.
TEST(Revealed, RowsThatDifferAreNotExplained) {
  PlainSteps backend(3);
  const auto outcome = outcome_of(backend, norm());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::cannot_tell);
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("no order explains"));
}

TEST(Revealed, OtherOperatorsAreUnavailable) {
  PlainSteps backend(std::nullopt);
  Check check = norm();
  check.operation = "silu";
  const auto outcome = outcome_of(backend, check);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::unavailable);
}

}  // namespace
}  // namespace kvsim::gpu
