// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Every linear kernel of the table, seen through the interface of back ends: the order that is
// found must be the one that the row declares.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gpu/reveal/reveal.h"
#include "gpu/sim_backend.h"
#include "sim/linear.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

std::vector<Format> storage_formats(const LinearKernel& kernel) {
  std::vector<Format> formats;
  for (const LinearRule& rule : kernel.rules) {
    if (std::find(formats.begin(), formats.end(), rule.storage) == formats.end()) {
      formats.push_back(rule.storage);
    }
  }
  return formats;
}

/// The tree's text with what decides a unit's bits in place of its name.
std::string tree_text(const Order& order, std::int64_t terms) {
  const auto tree = build_sum_tree(order, terms);
  EXPECT_TRUE(tree);
  std::string text = to_string(addition_tree(*tree));
  for (const OrderItem& item : order.items) {
    for (const auto& format : {item.partials, item.running}) {
      // Rounding to the accumulator changes nothing.
      if (format && *format != softfloat::binary32) {
        text += fmt::format(" {}", softfloat::format_name(*format));
      }
    }
  }
  if (const auto unit = unit_of(order)) {
    text += fmt::format(" {} L {} F {} {}", to_string(unit->operation), unit->fan_in,
                        unit->fraction_bits, to_string(unit->conversion));
  }
  return text;
}

/// Where results have the bits of the sums, the exponent of zero terms shows, or a bound of it.
void expect_zero_exponent(const ArithmeticFindings& seen, const Order& declared) {
  const auto unit = unit_of(declared);
  if (!unit || seen.fan_in == 0) return;
  EXPECT_EQ(seen.zero_exponent.kind == Seen::Kind::not_visible, !seen.why_no_zero_exponent.empty());
  EXPECT_TRUE(agrees(seen.zero_exponent, seen_number(unit->zero_exponent)).value_or(true))
      << to_string(seen.zero_exponent) << " for " << unit->zero_exponent;
}

void expect_declared(const LinearKernel& kernel, const Format& format, std::int64_t rows,
                     std::int64_t terms) {
  constexpr std::int64_t columns = 66;
  SCOPED_TRACE(fmt::format("{} {} {} rows {} terms", kernel.name, softfloat::format_name(format),
                           rows, terms));
  auto backend = make_sim_backend(kernel.name);
  ASSERT_TRUE(backend) << backend.error().message;
  const auto reduction = make_reduction(**backend, {"linear", format, rows, columns, terms});
  ASSERT_TRUE(reduction);
  const auto found = reveal(**reduction, {.least_outputs = 1000, .arithmetic = true});
  const auto plan = plan_linear(
      kernel, {rows, columns, terms, format, std::max<std::int64_t>(1, kernel.multiprocessors)});
  ASSERT_TRUE(plan);
  if (plan->output.precision < 8) {
    EXPECT_FALSE(found);  // an output of 8 bits cannot show it
    return;
  }
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->explained());
  for (const LinearColumns& declared : plan->columns) {
    if (declared.order.items.back().head > 0) continue;
    const auto sums = std::find_if(
        found->classes.begin(), found->classes.end(), [&](const RevealedSums& candidate) {
          return std::find(candidate.where.columns.begin(), candidate.where.columns.end(),
                           declared.first) != candidate.where.columns.end();
        });
    ASSERT_NE(sums, found->classes.end());
    ASSERT_TRUE(sums->model && sums->model->order);
    // An order on a unit that is nothing but fused multiply-adds is the plain one.
    std::string expected = tree_text(declared.order, terms);
    std::string seen = tree_text(*sums->model->order, terms);
    if (unit_of(declared.order) && unit_of(declared.order)->operation == UnitOperation::fma) {
      expected = to_string(addition_tree(*build_sum_tree(declared.order, terms)));
      seen = to_string(addition_tree(*build_sum_tree(*sums->model->order, terms)));
    }
    EXPECT_EQ(seen, expected) << to_string(*sums->model->order) << " for "
                              << to_string(declared.order);
    expect_zero_exponent(sums->arithmetic, declared.order);
    if (sums->arithmetic.product != "not visible") {
      EXPECT_EQ(sums->model->product, plan->rule->product);
    }
    if (!unit_of(declared.order)) {
      EXPECT_EQ(sums->model->accumulator, plan->rule->accumulator);
    }
  }
}

TEST(LinearKernels, AreFoundAsDeclared) {
  for (const LinearKernel& kernel : linear_kernels()) {
    for (const Format& format : storage_formats(kernel)) {
      expect_declared(kernel, format, 2, 200);
      // Split-K begins where a part has enough steps.
      if (kernel.split.kind != SplitKind::none) expect_declared(kernel, format, 1, 512);
      if (kernel.name == "torch-cpu-linear") expect_declared(kernel, format, 4, 250);
    }
  }
}

}  // namespace
}  // namespace kvsim::gpu
