// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The sums inside attention: q·k, seen through the softmax, and the sum of p, seen by what is lost
// in it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_calls.h"
#include "gpu/reveal/attention/score_sums.h"
#include "gpu/reveal/attention/weight_sums.h"
#include "gpu/sim_backend.h"
#include "sim/attention/kernel.h"
#include "sim/attention/run.h"
#include "sim/order.h"
#include "sim/sum_tree.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

std::string additions(std::string_view order, std::int64_t terms) {
  const auto parsed = parse_order(order);
  EXPECT_TRUE(parsed) << order;
  const auto tree = build_sum_tree(*parsed, terms);
  EXPECT_TRUE(tree) << order;
  return to_string(addition_tree(*tree));
}

ScoreFindings scores_of(Backend& backend, const AttentionLayer& layer) {
  AttentionCalls calls(backend, layer);
  auto found = find_scores(calls, layer.shape.kv_len);
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : ScoreFindings{};
}

AttentionLayer layer_of(const softfloat::Format& format, std::int64_t keys, std::int64_t dim,
                        std::int64_t queries = 1) {
  return {.shape = {.query_heads = 2,
                    .kv_heads = 1,
                    .query_len = queries,
                    .kv_len = keys,
                    .head_dim = dim},
          .format = format};
}

/// One class with those additions.
void expect_scores(std::string_view kernel, const AttentionLayer& layer, std::string_view order) {
  SCOPED_TRACE(kernel);
  const auto backend = make_sim_backend(kernel);
  ASSERT_TRUE(backend);
  const ScoreFindings found = scores_of(**backend, layer);
  ASSERT_EQ(found.classes.size(), 1) << found.why_not;
  EXPECT_EQ(to_string(found.classes.front().tree), additions(order, layer.shape.head_dim));
}

TEST(ScoreSums, HaveTheOrderOfTheKernel) {
  expect_scores("a100-fa2", layer_of(softfloat::bfloat16, 40, 64), "mma(a100.mma.bf16.f32)");
  expect_scores("h100-fa3", layer_of(softfloat::binary16, 40, 64), "mma(h100.wgmma.f16.f32)");
  expect_scores("torch-cpu", layer_of(softfloat::binary32, 40, 64), "lanes(4,1,join=halving)");
  expect_scores("torch-cpu", layer_of(softfloat::binary32, 40, 200, 5), "blocks(100)");
  expect_scores("torch-cpu-avx2", layer_of(softfloat::binary16, 40, 66, 2),
                "lanes(4,1,join=halving,tail=scalar)");
}

// Of 43 keys the last three are not a multiple of four.
TEST(ScoreSums, DifferInTheLastKeysOfAFewQueries) {
  const auto backend = make_sim_backend("torch-cpu-avx2");
  ASSERT_TRUE(backend);
  const ScoreFindings found = scores_of(**backend, layer_of(softfloat::binary32, 43, 64, 2));
  ASSERT_EQ(found.classes.size(), 2) << found.why_not;
  EXPECT_EQ(to_string(found.classes[0].tree), additions("lanes(4,1,join=halving)", 64));
  EXPECT_EQ(found.classes[1].keys, (std::vector<std::int64_t>{40, 41, 42}));
  EXPECT_EQ(to_string(found.classes[1].tree), additions("lanes(8,1,join=halving)", 64));
}

TEST(ScoreSums, SayWhyNothingIsSeen) {
  const auto backend = make_sim_backend("torch-cpu");
  ASSERT_TRUE(backend);
  EXPECT_EQ(scores_of(**backend, layer_of(softfloat::binary32, 1, 64)).why_not,
            "one key's p is 1 whatever its score is");
  EXPECT_EQ(scores_of(**backend, layer_of(softfloat::binary32, 5, 1)).why_not,
            "outputs of one element show one p");
  EXPECT_EQ(scores_of(**backend, layer_of(softfloat::binary32, 5, 300)).why_not,
            "scores of more than 256 elements are not counted");
}

void expect_weights(std::string_view kernel, const AttentionLayer& layer, std::string_view order) {
  SCOPED_TRACE(kernel);
  const auto backend = make_sim_backend(kernel);
  ASSERT_TRUE(backend);
  AttentionCalls calls(**backend, layer);
  const auto found = find_weights(calls, 100'000);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(found->tree) << found->why_not;
  EXPECT_EQ(to_string(*found->tree), additions(order, layer.shape.kv_len));
}

TEST(WeightSums, HaveTheOrderOfTheKernel) {
  const AttentionLayer layer = layer_of(softfloat::binary32, 45, 16);
  expect_weights("torch-cpu", layer, "lanes(16,1,join=halving,tail=scalar)");
  expect_weights("torch-cpu-avx2", layer, "lanes(8,1,join=halving,tail=scalar)");
  expect_weights("torch-cpu-avx2-eager", layer, "lanes(8,1,join=halving)");
}

TEST(WeightSums, SayWhyNothingIsSeen) {
  const auto backend = make_sim_backend("torch-cpu");
  ASSERT_TRUE(backend);
  AttentionCalls narrow(**backend, layer_of(softfloat::bfloat16, 45, 16));
  const auto of_narrow = find_weights(narrow, 100'000);
  ASSERT_TRUE(of_narrow);
  EXPECT_EQ(of_narrow->why_not, "results of 16 bits do not show the last bit of the sum");
  AttentionCalls many(**backend, layer_of(softfloat::binary32, 45, 16));
  const auto of_many = find_weights(many, 10);
  ASSERT_TRUE(of_many);
  EXPECT_EQ(of_many->why_not, "it would take about 270 calls");
}

/// PyTorch's kernel with other lanes or other scores than it says.
class Liar final : public Backend {
 public:
  explicit Liar(const TorchCpuRule& rule)
      : kernel_(*find_attention_kernel("torch-cpu")), rule_(rule) {
    kernel_.torch_cpu = &rule_;
  }
  [[nodiscard]] std::string name() const override { return "liar"; }
  [[nodiscard]] Fingerprint fingerprint() const override { return {}; }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override { return {}; }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    const std::vector<std::int64_t>& q = call.inputs[0].shape;
    const std::vector<std::int64_t>& k = call.inputs[1].shape;
    AttentionProblem problem;
    problem.shape = {q[0], k[0], q[1], k[1], q[2]};
    problem.mask.causal = false;
    problem.storage = call.inputs[0].format;
    problem.q = call.inputs[0].values.data();
    problem.k = call.inputs[1].values.data();
    problem.v = call.inputs[2].values.data();
    auto result = run_attention(kernel_, problem);
    if (!result) return result.error();
    return Tensor{problem.storage, q, std::move(result->out)};
  }
  [[nodiscard]] Result<bool> set_threads(std::int64_t /*n*/) override { return true; }

 private:
  AttentionKernel kernel_;
  TorchCpuRule rule_;
};

TEST(InnerSums, CatchLies) {
  TorchCpuRule rule = *find_attention_kernel("torch-cpu")->torch_cpu;
  rule.lanes = 4;
  Liar lanes(rule);
  AttentionCalls calls(lanes, layer_of(softfloat::binary32, 45, 16));
  const auto weights = find_weights(calls, 100'000);
  ASSERT_TRUE(weights && weights->tree);
  EXPECT_EQ(to_string(*weights->tree), additions("lanes(4,1,join=halving,tail=scalar)", 45));

  rule.scores_kernel = "control-linear";
  Liar sequential(rule);
  const ScoreFindings scores = scores_of(sequential, layer_of(softfloat::binary32, 45, 16));
  ASSERT_EQ(scores.classes.size(), 1) << scores.why_not;
  EXPECT_EQ(to_string(scores.classes.front().tree), additions("sequential", 16));
}

}  // namespace
}  // namespace kvsim::gpu
