// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Every softmax and RMS norm of the tables, seen through the interface of back ends: the order that
// is found must be the one that the row declares.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpu/reveal/positive_reveal.h"
#include "gpu/sim_backend.h"
#include "sim/operators/norm.h"
#include "sim/operators/softmax.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

struct Case {
  std::string kernel;
  std::string operation;
  Format format;
  std::int64_t terms;
};

Result<PositiveRevelation> find(const Case& row) {
  auto backend = make_sim_backend(row.kernel);
  if (!backend) return backend.error();
  auto of = PositiveOperator::make(
      **backend,
      {.operation = row.operation, .format = row.format, .columns = 64, .terms = row.terms});
  if (!of) return of.error();
  return reveal_positive(*of, {.least_outputs = 1000});
}

/// What was found must be explained, and have the additions of the declared order.
void expect_additions(const Result<PositiveRevelation>& found, std::string_view declared,
                      std::int64_t terms) {
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->explained());
  const auto order = parse_order(declared);
  ASSERT_TRUE(order);
  const auto tree = build_sum_tree(*order, terms);
  ASSERT_TRUE(tree);
  EXPECT_EQ(to_string(found->tree), to_string(addition_tree(*tree)));
  ASSERT_FALSE(found->orders.empty());
  const auto fitted = build_sum_tree(found->orders.front(), terms);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(digest(addition_tree(*fitted)), digest(addition_tree(*tree)));
}

void expect_softmax(const SoftmaxKernel& kernel, const Format& format, std::int64_t terms) {
  const std::string operation = takes_logarithm(kernel.result) ? "log-softmax" : "softmax";
  const Case row{std::string(kernel.name), operation, format, terms};
  SCOPED_TRACE(fmt::format("{} {} {}", kernel.name, softfloat::format_name(format), terms));
  const auto found = find(row);
  expect_additions(found, terms < kernel.short_below ? kernel.short_order : kernel.order, terms);
  if (!found || format.precision < 24) return;
  const auto& model = found->classes.front().model;
  ASSERT_TRUE(model);
  // Two logs differ in few results.
  EXPECT_EQ(takes_logarithm(model->result), takes_logarithm(kernel.result));
  if (!takes_logarithm(kernel.result)) {
    EXPECT_EQ(model->result, kernel.result);
  }
  // A model that is only bounded stands for the correctly rounded function.
  const auto means = [](ExpModel a, ExpModel b) {
    return a == b || exp_model_row(a).bounded || exp_model_row(b).bounded;
  };
  if (takes_logarithm(kernel.result)) return;  // shows e only in its sum
  const bool all_tail = terms < kernel.group;
  EXPECT_TRUE(means(model->exp.exp, all_tail ? kernel.tail_exp : kernel.exp))
      << to_string(model->exp);
  if (!all_tail && kernel.group > 0 && terms % kernel.group > 0) {
    EXPECT_TRUE(means(model->exp.tail_exp, kernel.tail_exp)) << to_string(model->exp);
  }
}

TEST(SoftmaxKernels, AreFoundAsDeclared) {
  for (const SoftmaxKernel& kernel : softmax_kernels()) {
    for (const std::int64_t terms : {3, 8, 21, 100, 512}) {
      expect_softmax(kernel, softfloat::binary32, terms);
    }
    expect_softmax(kernel, softfloat::bfloat16, 77);
    if (takes_logarithm(kernel.result)) {
      expect_softmax(kernel, softfloat::binary16, 50);
    }
  }
}

TEST(NormKernels, AreFoundAsDeclared) {
  for (const NormKernel& kernel : norm_kernels()) {
    if (kernel.kind != NormKind::rms) continue;
    const std::pair<Format, std::int64_t> cases[] = {
        {softfloat::binary32, 3},   {softfloat::binary32, 33}, {softfloat::binary32, 100},
        {softfloat::binary32, 512}, {softfloat::bfloat16, 64}, {softfloat::binary16, 51}};
    for (const auto& [format, terms] : cases) {
      SCOPED_TRACE(fmt::format("{} {} {}", kernel.name, softfloat::format_name(format), terms));
      const auto found = find({std::string(kernel.name), "rms-norm", format, terms});
      expect_additions(found, kernel.order, terms);
      if (!found) continue;
      const auto& model = found->classes.front().model;
      ASSERT_TRUE(model);
      // Squares of 16-bit numbers are exact, and one that starts a sum is rounded either way.
      const auto declared = build_sum_tree(*parse_order(kernel.order), terms);
      ASSERT_TRUE(declared);
      const bool fuses = std::ranges::any_of(
          declared->nodes, [](const SumNode& node) { return node.kind == SumNodeKind::add_term; });
      if (fuses && format.precision == 24) {
        EXPECT_EQ(model->product, kernel.product);
      }
      if (format.precision == 24) {
        EXPECT_EQ(model->root, kernel.root);
      }
      EXPECT_EQ(model->weight == WeightRule::plus_one, kernel.weight == WeightRule::plus_one);
    }
  }
}

}  // namespace
}  // namespace kvsim::gpu
