// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/rope.h"
#include "sim/operators/softmax.h"
#include "sim/order.h"

namespace kvsim {
namespace {

// What every table promises: unique names that find their rows, a source with a date, a note where
// something is assumed.
template <class Rows, class Find>
void check_rows(const Rows& rows, Find find) {
  std::set<std::string_view> names;
  for (const auto& row : rows) {
    EXPECT_EQ(find(row.name), &row) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_FALSE(row.date.empty()) << row.name;
    EXPECT_TRUE(row.device == "CPU" || row.device == "GPU" || row.device == "any") << row.name;
    if (row.evidence == softfloat::Evidence::assumed) {
      EXPECT_FALSE(row.note.empty()) << row.name << " does not say what is assumed";
    }
  }
  EXPECT_EQ(find("no-such-row"), nullptr);
}

TEST(OperatorRows, AreFoundByNameAndSayWhereTheyComeFrom) {
  check_rows(norm_kernels(), find_norm_kernel);
  check_rows(softmax_kernels(), find_softmax_kernel);
  check_rows(rope_kernels(), find_rope_kernel);
  check_rows(activation_kernels(), find_activation_kernel);
  check_rows(residual_kernels(), find_residual_kernel);
}

// A row's order is its canonical text.
TEST(OperatorRows, OrdersParse) {
  const auto check = [](std::string_view name, std::string_view text) {
    const Result<Order> order = parse_order(text);
    ASSERT_TRUE(order) << name << ": " << order.error().message;
    EXPECT_EQ(to_string(*order), text) << name;
  };
  for (const NormKernel& row : norm_kernels()) check(row.name, row.order);
  for (const SoftmaxKernel& row : softmax_kernels()) {
    check(row.name, row.order);
    if (row.short_below > 0) check(row.name, row.short_order);
  }
}

}  // namespace
}  // namespace kvsim
