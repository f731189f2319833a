// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Sums of one sign: trees from yes-or-no answers, and what is found of operators that lie about how
// they add.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/operators.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/positive_reveal.h"
#include "gpu/reveal/positive_tree.h"
#include "sim/operators/norm.h"
#include "sim/operators/softmax.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using ::testing::HasSubstr;

AdditionTree tree_of(std::string_view order, std::int64_t terms) {
  const auto tree = build_sum_tree(*parse_order(order), terms);
  EXPECT_TRUE(tree);
  return addition_tree(*tree);
}

/// Answers as a tree gives them: where terms meet is the deepest node above both.
class TreeAnswers {
 public:
  explicit TreeAnswers(const AdditionTree& tree)
      : parent_(tree.nodes().size(), -1),
        depth_(tree.nodes().size(), 0),
        leaf_(tree.nodes().size()) {
    for (std::size_t i = tree.nodes().size(); i-- > 0;) {
      const AdditionTree::Node& node = tree.nodes()[i];
      if (node.term >= 0) leaf_[static_cast<std::size_t>(node.term)] = i;
      for (const std::int32_t child : node.children) {
        parent_[static_cast<std::size_t>(child)] = static_cast<std::int64_t>(i);
        depth_[static_cast<std::size_t>(child)] = depth_[i] + 1;
      }
    }
  }
  Result<std::vector<bool>> operator()(const std::vector<AbsorptionProbe>& probes) const {
    std::vector<bool> met;
    for (const AbsorptionProbe& probe : probes) {
      met.push_back(meeting(probe.first, probe.second) > meeting(probe.first, probe.large));
    }
    return met;
  }

 private:
  std::int64_t meeting(std::int32_t a, std::int32_t b) const {
    std::size_t i = leaf_[static_cast<std::size_t>(a)];
    std::size_t j = leaf_[static_cast<std::size_t>(b)];
    while (i != j) {
      std::size_t& deeper = depth_[i] > depth_[j] ? i : j;
      deeper = static_cast<std::size_t>(parent_[deeper]);
    }
    return depth_[i];
  }
  std::vector<std::int64_t> parent_;
  std::vector<std::int64_t> depth_;
  std::vector<std::size_t> leaf_;
};

TEST(AbsorptionTree, IsFoundWithFewProbes) {
  for (const char* order :
       {"sequential", "reverse", "pairwise", "lanes(8,1,join=halving)", "torch-cascade(8)",
        "lanes(16,1,join=halving,tail=scalar)", "blocks(32)/lanes(4,1,join=pairwise)"}) {
    for (const std::int64_t n : {1, 2, 3, 5, 64, 512}) {
      const AdditionTree declared = tree_of(order, n);
      double probes = 0;
      constexpr std::uint64_t seeds = 4;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto found = absorption_tree(n, TreeAnswers(declared), "test", seed);
        ASSERT_TRUE(found) << found.error().message;
        EXPECT_TRUE(found->tree == declared) << order << ' ' << n;
        probes += static_cast<double>(found->probes) / seeds;
      }
      if (n < 64) continue;
      const auto size = static_cast<double>(n);
      EXPECT_LE(probes, 2 * size * std::log2(size)) << order << ' ' << n;
    }
  }
}

TEST(AbsorptionTree, OfANodeWithThreeOperandsIsNone) {
  AdditionTree tree;
  const std::int32_t a = tree.add_term(0);
  const std::int32_t b = tree.add_term(1);
  const std::int32_t c = tree.add_term(2);
  const std::int32_t three = tree.add_sum({a, b, c});
  tree.add_sum({three, tree.add_term(3)});
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const auto found = absorption_tree(4, TreeAnswers(tree), "test", seed);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind, ErrorKind::cannot_tell);
    EXPECT_THAT(found.error().message, HasSubstr("meet in no order"));
  }
}

TEST(AbsorptionTree, WithoutAnyRoundingIsAnExactSum) {
  const AbsorptionAnswers always = [](const std::vector<AbsorptionProbe>& probes) {
    return Result<std::vector<bool>>(std::vector<bool>(probes.size(), true));
  };
  const auto found = absorption_tree(9, always, "test");
  ASSERT_TRUE(found);
  EXPECT_EQ(to_string(found->tree), to_string(tree_of("exact", 9)));
}

/// How an operator of the test adds, and how it is broken.
struct Lie {
  std::string order = "lanes(8,1,join=halving)";
  bool wide_sums = false;       ///< sums in binary64, one after the other
  bool restless = false;        ///< other bits in every second call
  bool row_3_differs = false;   ///< row 3 is added one after the other
  bool wrong_last_bit = false;  ///< of every result above 1/2
};

class LyingBackend final : public Backend {
 public:
  explicit LyingBackend(Lie lie) : lie_(std::move(lie)) {}
  std::string name() const override { return "liar"; }
  Fingerprint fingerprint() const override { return {}; }
  std::vector<OperatorSupport> operators() const override { return {}; }
  Result<bool> set_threads(std::int64_t) override { return true; }

  Result<Tensor> run(const OperatorCall& call) override {
    ++calls_;
    Tensor out = call.inputs[0];
    const std::int64_t columns = out.shape[1];
    if (call.operation == "rms-norm") {
      const NormKernel kernel{.name = "test", .order = lie_.order};
      const bool weighted = call.inputs.size() > 1;
      const NormProblem problem{.storage = out.format,
                                .rows = out.shape[0],
                                .columns = columns,
                                .x = call.inputs[0].values.data(),
                                .weight = weighted ? call.inputs[1].values.data() : nullptr,
                                .epsilon = *number_attribute(call, "eps", 1e-6)};
      EXPECT_TRUE(apply_norm(kernel, problem, out.values.data()));
    } else if (lie_.wide_sums) {
      for (std::size_t i = 0; i < out.values.size(); ++i) {
        const auto n = static_cast<std::size_t>(columns);
        double sum = 0;
        for (std::size_t k = i / n * n; k < i / n * n + n; ++k) {
          sum += static_cast<double>(ExpFunction().exp(call.inputs[0].values[k]));
        }
        out.values[i] = static_cast<float>(
            static_cast<double>(ExpFunction().exp(call.inputs[0].values[i])) / sum);
      }
    } else {
      softmax(lie_.order, out, 0, out.shape[0]);
      if (lie_.row_3_differs) {
        std::copy_n(call.inputs[0].values.begin() + 3 * columns, columns,
                    out.values.begin() + 3 * columns);
        softmax("sequential", out, 3, 4);
      }
    }
    for (float& value : out.values) {
      const bool wrong = (lie_.restless && calls_ % 2 == 0 && value > 0.125F) ||
                         (lie_.wrong_last_bit && value > 0.5F && value < 0.9F);
      if (wrong) value = std::nextafter(value, 0.0F);
    }
    return out;
  }

 private:
  static void softmax(std::string_view order, Tensor& out, std::int64_t first, std::int64_t end) {
    const SoftmaxKernel kernel{
        .name = "test", .order = order, .result = SoftmaxResult::times_reciprocal};
    float* const at = out.values.data() + first * out.shape[1];
    const SoftmaxProblem problem{
        .storage = out.format, .rows = end - first, .columns = out.shape[1], .x = at};
    EXPECT_TRUE(apply_softmax(kernel, problem, at));
  }
  Lie lie_;
  int calls_ = 0;
};

Result<PositiveRevelation> find(const Lie& lie, const std::string& operation, std::int64_t terms,
                                std::int64_t rows = 32) {
  LyingBackend backend(lie);
  auto of = PositiveOperator::make(
      backend,
      {.operation = operation, .format = softfloat::binary32, .columns = rows, .terms = terms});
  EXPECT_TRUE(of);
  return reveal_positive(*of, {.least_outputs = 500});
}

TEST(RevealPositive, FindsTheOrderThatIsThere) {
  std::string swapped = "perm(0";
  for (int i = 1; i < 40; ++i) swapped += fmt::format(",{}", i == 20 ? 31 : i == 31 ? 20 : i);
  swapped += ")";
  for (const std::string& order :
       {std::string("lanes(8,1,join=halving)"), std::string("lanes(4,1,join=halving)"),
        std::string("lanes(8,1,join=pairwise)"), std::string("reverse"), std::string("blocks(9)"),
        std::string("blocks(10)"), swapped}) {
    for (const char* operation : {"softmax", "rms-norm"}) {
      const auto found = find({.order = order}, operation, 40);
      ASSERT_TRUE(found) << order << ": " << found.error().message;
      EXPECT_EQ(to_string(found->tree), to_string(tree_of(order, 40))) << operation;
      EXPECT_TRUE(found->explained()) << operation << ' ' << order;
    }
  }
}

TEST(RevealPositive, SaysWhatDoesNotRepeat) {
  const auto found = find({.restless = true}, "softmax", 20);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::cannot_tell);
  EXPECT_THAT(found.error().message, HasSubstr("other bits the second time"));
}

TEST(RevealPositive, SeesThatSumsAreWide) {
  const auto found = find({.wide_sums = true}, "softmax", 20);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->absorbs);
}

TEST(RevealPositive, SeesARowOfItsOwn) {
  const auto found = find({.row_3_differs = true}, "softmax", 20);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->classes.size(), 2U);
  EXPECT_EQ(found->classes[1].rows, std::vector<std::int64_t>{3});
  EXPECT_TRUE(found->classes[0].explained);
  EXPECT_FALSE(found->classes[1].explained);
  EXPECT_FALSE(found->explained());
}

TEST(RevealPositive, DoesNotExplainWrongBits) {
  const auto found = find({.wrong_last_bit = true}, "softmax", 20);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->explained());
  ASSERT_TRUE(found->classes[0].failing);
  EXPECT_LE(found->classes[0].failing->columns.size(), 3U);
  EXPECT_NE(found->classes[0].failing->seen, found->classes[0].failing->replayed);
}

TEST(RevealPositive, TakesAboutTermsTimesLevelsCallsOfOneRow) {
  for (const char* operation : {"softmax", "rms-norm"}) {
    const auto found = find({}, operation, 128, 1);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_LE(found->calls.probes, 2 * 128 * 7);
    // Besides the probes: choosing elements and ε.
    EXPECT_LE(found->calls.tree, found->calls.probes + 64);
    const auto many = find({}, operation, 128, 512);
    ASSERT_TRUE(many) << many.error().message;
    EXPECT_LE(many->calls.tree, 100);
  }
}

}  // namespace
}  // namespace kvsim::gpu
