// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// The tree of an order, written out by hand; and the three evaluators of an order, the loop nest on
// softfloat, the tree and the vector engine, against each other. What an order means is checked in
// order_test.cc, what its arithmetic is in sum_test.cc, both against oracles.

#include "sim/sum_tree.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/columns.h"
#include "sim/engine/simd_level.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Rounded;

SumTree tree_of(std::string_view order, std::int64_t n) {
  return build_sum_tree(parse_order(order).value(), n).value();
}

TEST(SumTree, TextWrittenByHand) {
  const struct {
    std::string_view order;
    std::int64_t n;
    std::string_view text;
  } cases[] = {
      {"sequential", 0, "zero"},
      {"sequential", 1, "0"},
      {"sequential", 3, "((0+1)+2)"},
      {"sequential(init=zero)", 2, "((zero+0)+1)"},
      {"pairwise", 4, "((0+1)+(2+3))"},
      {"blocks(1)", 2, "(0+[1])"},  // joined, not accumulated
      {"lanes(2,1,tail=scalar)", 3, "((0+[1])+2)"},
      {"reverse", 2, "(1+0)"},
      {"exact", 3, "exact(0,1,2)"},
      {"exact(init=zero)", 1, "exact(zero,0)"},
      {"split(2,partials=bf16,running=fp16)", 3,
       "binary16((binary16(bfloat16((0+1)))+bfloat16(2)))"},
      {"blocks(1,merge=reverse,running=bf16)", 2, "bfloat16((bfloat16(1)+[0]))"},
      // A block of 4 (Volta), a chain of two.
      {"mma(v100.f16.f32)", 2, "v100.mma.f16.f32{zero;0,1}"},
      {"mma(v100.f16.f32)", 6, "v100.mma.f16.f32{v100.mma.f16.f32{zero;0,1,2,3};4,5}"},
      {"blocks(4)/mma(v100.f16.f32)", 6,
       "(v100.mma.f16.f32{zero;0,1,2,3}+v100.mma.f16.f32{zero;4,5})"},
      // VDPBF16PS: the odd one of each pair first.
      {"mma(x86.vdpbf16ps.bf16.f32)", 3, "U{U{U{U{zero;1};0};zero};2}"},
      // FP8 on Hopper's mma.sync: two FP16 blocks, with the addend added last.
      {"mma(h100.mma.e4m3.f32)", 5, "U{zero+U{U{zero;0,1,4};2,3}}"},
  };
  for (const auto& c : cases) {
    const SumTree tree = tree_of(c.order, c.n);
    std::string text(c.text);  // U stands for the unit's name
    for (std::size_t at = text.find('U'); at != std::string::npos; at = text.find('U', at)) {
      text.replace(at, 1, tree.unit);
    }
    EXPECT_EQ(to_string(tree), text) << c.order << " over " << c.n;
  }
}

// Rows of docs/orders.md: | `order` | terms | `tree` |.
TEST(SumTree, TreesOfTheDocumentation) {
  std::ifstream file(std::string(KVSIM_SOURCE_DIR) + "/docs/orders.md");
  const std::regex row("\\| `([^`]+)` \\| ([0-9]+) \\| `([^`]+)` \\|");
  std::smatch match;
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (!std::regex_match(line, match, row)) continue;
    const std::string terms = match[2].str();
    std::int64_t n = 0;
    std::from_chars(terms.data(), terms.data() + terms.size(), n);
    EXPECT_EQ(to_string(tree_of(match[1].str(), n)), match[3].str()) << line;
    ++rows;
  }
  EXPECT_GT(rows, 20);
}

TEST(SumTree, EqualTreesHaveEqualDigests) {
  EXPECT_EQ(digest(tree_of("sequential", 2)), digest(tree_of("pairwise", 2)));
  EXPECT_EQ(digest(tree_of("reverse/reverse", 9)), digest(tree_of("sequential", 9)));
  EXPECT_EQ(digest(tree_of("lanes(4,1,join=butterfly)", 4)),
            digest(tree_of("lanes(4,1,join=halving)", 4)));
  EXPECT_NE(digest(tree_of("pairwise", 3)), digest(tree_of("halving", 3)));
  EXPECT_NE(digest(tree_of("blocks(1)", 2)), digest(tree_of("sequential", 2)));
  // printf '((0+1)+2)' | sha256sum
  EXPECT_EQ(digest(tree_of("sequential", 3)),
            "502b99eacac9d9adff9211112402de5bc882ddaa2dd636cf01d2ac56371cd711");
}

TEST(SumTree, Graphviz) {
  EXPECT_EQ(to_graphviz(tree_of("lanes(2,1)/exact", 3)),
            "digraph sum {\n"
            "  node [shape=circle];\n"
            "  n0 [shape=box, label=\"exact\"];\n"
            "  t0 [shape=plaintext, label=\"0\"];\n"
            "  n0 -> t0;\n"
            "  t1 [shape=plaintext, label=\"2\"];\n"
            "  n0 -> t1;\n"
            "  n1 [shape=box, label=\"exact\"];\n"
            "  t2 [shape=plaintext, label=\"1\"];\n"
            "  n1 -> t2;\n"
            "  n2 [shape=circle, label=\"+\"];\n"
            "  n2 -> n0;\n"
            "  n2 -> n1;\n"
            "}\n");
}

TEST(SumTree, Errors) {
  const auto message = [](std::string_view order, std::int64_t n) {
    const Result<SumTree> tree = build_sum_tree(parse_order(order).value(), n);
    return tree ? std::string("a tree") : tree.error().message;
  };
  EXPECT_EQ(message("sequential", max_tree_terms), "a tree");
  EXPECT_EQ(message("sequential", max_tree_terms + 1),
            "tree of 1048577 terms; accepted: at most 1048576");
  EXPECT_EQ(message("perm(1,0)", 3),
            "order item 1 of 1 over 3 terms: perm has 2 entries but meets a range of 3; accepted: "
            "a perm of exactly the range's length");
  std::string deep = "blocks(1,partials=binary32,running=binary32)";
  for (int i = 0; i < 4; ++i) deep += "/blocks(1,partials=binary32,running=binary32)";
  EXPECT_EQ(message(deep, max_tree_terms),
            "tree of order " + deep + " over 1048576 terms: more than 4194304 nodes");
  const std::vector<Bits> two(2);
  const std::vector<Bits> three(3);
  EXPECT_EQ(evaluate_tree(tree_of("sequential", 3), Product::rounded, softfloat::binary16,
                          softfloat::binary16, three, two)
                .error()
                .message,
            "3 and 2 factors for a tree of 3 terms; accepted: one of each for every term");
  EXPECT_EQ(evaluate_tree(tree_of("mma(v100.f16.f32)", 2), Product::rounded, softfloat::bfloat16,
                          softfloat::binary32, two, two)
                .error()
                .message,
            "order item mma(v100.mma.f16.f32): input format bfloat16; accepted: binary16, what the "
            "unit reads");
}

// ---------------------------------------------------------------- the evaluators

/// Every kind of item, every option and some of every nesting.
constexpr std::string_view orders[] = {
    "sequential",
    "sequential(init=zero)",
    "reverse",
    "reverse(init=zero)/pairwise",
    "exact",
    "exact(init=zero)",
    "pairwise",
    "pairwise(init=zero)",
    "halving",
    "lanes(8,1)",
    "lanes(4,2,join=halving,tail=scalar)",
    "lanes(3,2,join=sequential,tail=scalar-first,init=zero)",
    "lanes(32,1,join=butterfly)",
    "lanes(12,1,join=butterfly,tail=scalar)/pairwise",
    "lanes(4,1)/exact",
    "blocks(8)",
    "blocks(8,init=zero)/lanes(4,1)",
    "blocks(5,merge=reverse,partials=F)/halving",
    "blocks(4,merge=pairwise,running=F)",
    "blocks(4,merge=halving,partials=F,running=F)/reverse",
    "blocks(3,merge=butterfly)/exact",
    "split(4)",
    "split(4,multiple=4)/lanes(2,2)",
    "split(3,running=F)",
    "split(8,partials=F,running=F)",
    "split(8,merge=reverse,init=zero,running=F)",
    "split(6,merge=butterfly,partials=F,init=zero)",
    "split(2,merge=pairwise)/split(3,partials=F)/blocks(2)",
    "numpy-pairwise",
    "numpy-pairwise(init=zero)",
    "split(3)/numpy-pairwise",
    "torch-cascade(1)",
    "torch-cascade(4)",
    "reverse/torch-cascade(8)",
};

struct Formats {
  Format input;
  Format accumulator;
  std::string_view narrow;  // F of the orders above
};

constexpr Formats all_formats[] = {{softfloat::binary16, softfloat::binary32, "bfloat16"},
                                   {softfloat::bfloat16, softfloat::binary16, "e5m2"},
                                   {softfloat::e4m3, softfloat::bfloat16, "e4m3"}};

Order order_with(std::string_view text, std::string_view format) {
  std::string order(text);
  for (std::size_t at = order.find("=F"); at != std::string::npos; at = order.find("=F", at)) {
    order.replace(at + 1, 1, format);
  }
  return parse_order(order).value();
}

/// Numbers of either sign within a factor of 16, so that most sums are inexact and many cancel.
std::vector<Bits> numbers(std::mt19937_64& random, const Format& format, std::int64_t n) {
  std::vector<Bits> codes;
  for (std::int64_t i = 0; i < n; ++i) {
    const Bits sign = random() % 2 == 0 ? format.sign_bit() : 0;
    const auto exponent = static_cast<Bits>(format.bias - 2 + static_cast<int>(random() % 4));
    codes.push_back(sign | (exponent << format.trailing_bits()) |
                    (random() & format.trailing_mask()));
  }
  return codes;
}

/// sum_products() against the tree, and against every column of the engine at every level.
void compare_evaluators(const Order& order, const Formats& formats, Product product, std::int64_t n,
                        std::int64_t columns, std::mt19937_64& random) {
  const std::string name = to_string(order) + " over " + std::to_string(n) + ", " +
                           std::string(to_string(product)) + ", " +
                           std::string(softfloat::format_name(formats.accumulator));
  const SumTree tree = build_sum_tree(order, n).value();
  const std::vector<Bits> a = numbers(random, formats.input, n);
  std::vector<std::vector<Bits>> b;
  std::vector<float> engine_a;
  std::vector<float> engine_b(static_cast<std::size_t>(n * columns));
  std::vector<float> expected;
  for (const Bits code : a) engine_a.push_back(softfloat::to_float(formats.input, code));
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::vector<Bits> column = numbers(random, formats.input, n);
    for (std::int64_t k = 0; k < n; ++k) {
      engine_b[static_cast<std::size_t>(k * columns + j)] =
          softfloat::to_float(formats.input, column[static_cast<std::size_t>(k)]);
    }
    const Rounded sum = sum_products(order, product, formats.input, formats.accumulator, a, column);
    const Result<Rounded> evaluated =
        evaluate_tree(tree, product, formats.input, formats.accumulator, a, column);
    ASSERT_TRUE(evaluated) << name << ": " << evaluated.error().message;
    ASSERT_EQ(*evaluated, sum) << name;
    expected.push_back(softfloat::to_float(formats.accumulator, sum.bits));
  }
  if (unit_of(order)) return;
  const ColumnsProblem problem{.order = order,
                               .product = product,
                               .input = formats.input,
                               .accumulator = formats.accumulator,
                               .terms = n,
                               .columns = columns,
                               .stride = columns,
                               .a = engine_a.data(),
                               .b = engine_b.data()};
  const std::vector<SimdLevel> levels = list_simd_levels();
  for (const SimdLevel level : levels) {
    std::vector<float> out(expected.size());
    const Result<bool> done = sum_columns(problem, out, {}, {.threads = 1, .level = level});
    ASSERT_TRUE(done) << name << ": " << done.error().message;
    for (std::size_t j = 0; j < out.size(); ++j) {
      ASSERT_EQ(softfloat::from_float(out[j]), softfloat::from_float(expected[j]))
          << name << ", column " << j << " at " << simd_level_name(level);
    }
  }
}

TEST(SumEvaluators, AgreeForEveryOrderAndLength) {
  std::mt19937_64 random(21);
  for (const std::string_view text : orders) {
    for (std::int64_t n = 0; n <= 64; ++n) {
      const Formats& formats = all_formats[static_cast<std::size_t>(n) % std::size(all_formats)];
      const Order order = order_with(text, formats.narrow);
      for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
        compare_evaluators(order, formats, product, n, n % 8 == 0 ? 21 : 3, random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(SumEvaluators, AgreeForLongSums) {
  std::mt19937_64 random(22);
  for (const std::string_view text : orders) {
    for (const std::int64_t n : {129, 1000, 2049}) {
      compare_evaluators(order_with(text, "bfloat16"), all_formats[0], Product::fused, n, 2,
                         random);
      if (HasFatalFailure()) return;
    }
  }
  for (const std::string_view text :
       {"split(7,multiple=64,partials=F,running=F)/blocks(128)/lanes(16,4)", "torch-cascade(8)",
        "numpy-pairwise", "pairwise", "sequential"}) {
    compare_evaluators(order_with(text, "bfloat16"), all_formats[0], Product::rounded, 16384, 2,
                       random);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace kvsim
