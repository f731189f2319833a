// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The simulator's own kernels, looked at from outside: what is found must be what is declared, and
// what is declared wrongly must be caught.
#include "gpu/reveal/reveal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gpu/reveal/replay_check.h"
#include "gpu/sim_backend.h"
#include "sim/linear.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

/// A case of the self-proof: an order in the simulator and what was found.
struct Declared {
  std::string order;
  std::string product = "fused";
  Format input = softfloat::binary32;
  std::int64_t terms = 100;
  std::int64_t columns = 64;
  std::string operation = "linear";
};

std::unique_ptr<Reduction> reduction_of(Backend& backend, const Declared& declared) {
  ReductionShape shape{declared.operation, declared.input, 1, declared.columns, declared.terms};
  shape.attributes = {{"order", declared.order}, {"product", declared.product}};
  auto reduction = make_reduction(backend, shape);
  EXPECT_TRUE(reduction) << reduction.error().message;
  return std::move(*reduction);
}

AdditionTree additions(const Order& order, std::int64_t n) {
  const auto tree = build_sum_tree(order, n);
  EXPECT_TRUE(tree) << tree.error().message;
  return addition_tree(*tree);
}

/// What of a unit decides its bits.
std::string unit_text(const Order& order) {
  const auto unit = unit_of(order);
  if (!unit) return "";
  return fmt::format("{} L {} F {} {}", to_string(unit->operation), unit->fan_in,
                     unit->fraction_bits, to_string(unit->conversion));
}

void expect_found(const Declared& declared) {
  SCOPED_TRACE(declared.operation + " " + declared.order);
  auto backend = make_sim_backend("");
  ASSERT_TRUE(backend);
  const auto reduction = reduction_of(**backend, declared);
  RevealOptions options;
  options.least_outputs = 1000;
  const auto found = reveal(*reduction, options);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->classes.size(), 1);
  const RevealedSums& sums = found->classes.front();
  EXPECT_TRUE(sums.explained);
  ASSERT_TRUE(sums.model);
  ASSERT_TRUE(sums.model->order);
  const auto order = parse_order(declared.order);
  ASSERT_TRUE(order);
  EXPECT_TRUE(additions(*sums.model->order, declared.terms) == additions(*order, declared.terms))
      << to_string(*sums.model->order);
  EXPECT_EQ(unit_text(*sums.model->order), unit_text(*order));
  if (sums.arithmetic.product != "not visible") {
    EXPECT_EQ(to_string(sums.model->product), declared.product);
  }
}

TEST(Reveal, FindsWhatIsDeclared) {
  expect_found({"sequential"});
  expect_found({"sequential", "rounded"});
  expect_found({"blocks(32)/lanes(4,2,join=halving)", "rounded"});
  expect_found({"lanes(8,1,join=butterfly,tail=scalar-first)"});
  expect_found({"split(4)/pairwise"});
  expect_found({"perm(3,0,2,1,4)", "fused", softfloat::binary32, 5});
  expect_found({"blocks(32,partials=bf16)/mma(a100.mma.bf16.f32)", "fused", softfloat::bfloat16});
  expect_found({"split(4,multiple=16,running=bf16)", "fused", softfloat::bfloat16});
  expect_found({"mma(mi300.mfma.f16.f32)", "fused", softfloat::binary16});
  expect_found({"torch-cascade(8)", "rounded", softfloat::binary32, 150, 64, "sum"});
  expect_found({"torch-cascade(8)", "rounded", softfloat::binary32, 150, 64, "mean"});
  expect_found({"lanes(16,1,join=halving)", "fused", softfloat::binary32, 60, 1, "dot"});
}

TEST(Reveal, TellsWhatATreeDoesNot) {
  auto backend = make_sim_backend("");
  ASSERT_TRUE(backend);
  const auto findings = [&](const Declared& declared) {
    const auto found = reveal(*reduction_of(**backend, declared), {.least_outputs = 100});
    EXPECT_TRUE(found);
    return found->classes.front().arithmetic;
  };
  const ArithmeticFindings unit =
      findings({"mma(h100.wgmma.bf16.f32)", "fused", softfloat::bfloat16});
  EXPECT_EQ(unit.fan_in, 16);
  EXPECT_EQ(unit.fraction_bits, 25);
  ASSERT_FALSE(unit.sums.empty());
  EXPECT_EQ(unit.sums.front().precision, 24);
  EXPECT_EQ(unit.sums.front().rounding, RoundingSeen::toward_zero);
  EXPECT_EQ(unit.output, RoundingSeen::nearest_even);
  EXPECT_EQ(unit.subnormal_factors, SubnormalsSeen::kept);

  const ArithmeticFindings partials =
      findings({"blocks(20,partials=bf16)", "fused", softfloat::bfloat16, 100, 128});
  ASSERT_EQ(partials.sums.size(), 2);
  EXPECT_EQ(partials.sums[0].precision, 24);
  EXPECT_EQ(partials.sums[1].precision, 8);
  EXPECT_EQ(partials.sums[1].nodes, 5);

  EXPECT_EQ(findings({"sequential"}).product, "fused");
  EXPECT_EQ(findings({"sequential", "rounded"}).product, "rounded");
  const ArithmeticFindings flushing =
      findings({"mma(x86.vdpbf16ps.bf16.f32)", "fused", softfloat::bfloat16});
  EXPECT_EQ(flushing.subnormal_factors, SubnormalsSeen::flushed);
  EXPECT_EQ(flushing.subnormal_sums, SubnormalsSeen::flushed);
}

TEST(Reveal, TellsTheExponentOfZeroTerms) {
  auto backend = make_sim_backend("");
  ASSERT_TRUE(backend);
  const auto findings = [&](const Declared& declared) {
    const auto found = reveal(*reduction_of(**backend, declared), {.least_outputs = 100});
    EXPECT_TRUE(found);
    return found ? found->classes.front().arithmetic : ArithmeticFindings{};
  };
  const ArithmeticFindings wide = findings({"mma(h100.wgmma.tf32.f32)"});
  EXPECT_EQ(wide.zero_exponent, seen_number(-133)) << to_string(wide.zero_exponent);
  EXPECT_EQ(wide.why_no_zero_exponent, "");
  const ArithmeticFindings half =
      findings({"mma(h100.mma.f16.f16)", "fused", softfloat::binary16, 64});
  EXPECT_EQ(half.zero_exponent, seen_number(-22)) << to_string(half.zero_exponent);
  // A lie of one.
  const ArithmeticFindings other =
      findings({"mma(h100.mma.f16.f16(zero_exponent=-21))", "fused", softfloat::binary16, 64});
  EXPECT_EQ(other.zero_exponent, seen_number(-21)) << to_string(other.zero_exponent);
  const ArithmeticFindings narrow =
      findings({"mma(h100.wgmma.bf16.f32)", "fused", softfloat::bfloat16});
  EXPECT_EQ(narrow.zero_exponent, Seen{});
  EXPECT_EQ(narrow.why_no_zero_exponent, "results have fewer bits than sums");
  EXPECT_EQ(findings({"sequential"}).why_no_zero_exponent, "");
}

/// A model that is wrong in one respect must differ somewhere, and the difference must shrink.
void expect_caught(const Declared& declared, const std::string& lie, Product product) {
  SCOPED_TRACE(lie);
  auto backend = make_sim_backend("");
  ASSERT_TRUE(backend);
  const auto reduction = reduction_of(**backend, declared);
  const auto observation = observe(*reduction, DataKind::cancel, 1, 1);
  ASSERT_TRUE(observation);
  SumModel model;
  model.order = *parse_order(lie);
  model.product = product;
  model.input = declared.input;
  model.accumulator = softfloat::binary32;
  model.output = reduction->output();
  SumClass all{{0}, {}};
  for (std::int64_t j = 0; j < declared.columns; ++j) all.columns.push_back(j);
  const auto compared = compare(*reduction, model, all, *observation);
  ASSERT_TRUE(compared) << compared.error().message;
  EXPECT_GT(compared->different, 0);
  if (compared->different == 0) return;
  const auto failing = shrink(*reduction, model, *observation, *compared);
  ASSERT_TRUE(failing);
  EXPECT_LE(failing->terms.size(), 40);
  EXPECT_NE(failing->seen, failing->replayed);
}

TEST(Reveal, CatchesPlantedLies) {
  // A swapped pair.
  expect_caught({"perm(1,0,2,3,4,5)/lanes(2,1)", "rounded", softfloat::binary32, 6, 512},
                "lanes(2,1)", Product::rounded);
  // A shifted split.
  expect_caught({"blocks(48)", "fused"}, "blocks(49)", Product::fused);
  // One bit of F: the same additions, with 24 fraction bits in place of 25.
  expect_caught({"blocks(8)/mma(h100.mma.bf16.f32)", "fused", softfloat::bfloat16, 256, 256},
                "blocks(8)/mma(a100.mma.bf16.f32)", Product::fused);
  // Rounded for fused.
  expect_caught({"sequential", "fused"}, "sequential", Product::rounded);
}

TEST(Reveal, SaysWhereAnOutputIsTooNarrow) {
  auto backend = make_sim_backend("control-linear");
  ASSERT_TRUE(backend);
  const ReductionShape shape{"linear", softfloat::e4m3, 1, 8, 8};
  const auto reduction = make_reduction(**backend, shape);
  ASSERT_TRUE(reduction);
  const auto found = reveal(**reduction);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::cannot_tell);
}

}  // namespace
}  // namespace kvsim::gpu
