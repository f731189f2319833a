// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Attention seen from outside: blocks of keys drawn by hand, kernels of the simulator, and kernels
// that are not what the table says.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/operators.h"
#include "gpu/reveal/attention/attention_dependence.h"
#include "gpu/reveal/attention/key_blocks.h"
#include "gpu/reveal/attention/rescale_probe.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/sim_backend.h"
#include "sim/attention/kernel.h"
#include "sim/attention/run.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// A key knows of another's score if it is in the same split and its block comes no earlier.
AskKnowing layout(const std::vector<KeyBlock>& blocks) {
  return [blocks](std::int64_t raised) -> Result<KnowingKeys> {
    const KeyBlock* own = nullptr;
    for (const KeyBlock& block : blocks) {
      if (raised >= block.begin && raised < block.end) own = &block;
    }
    KnowingKeys keys;
    for (const KeyBlock& block : blocks) {
      const bool knows = block.split == own->split && block.position >= own->position;
      keys.insert(keys.end(), static_cast<std::size_t>(block.end - block.begin), knows ? 1 : 0);
    }
    return keys;
  };
}

KeyBlocks found_in(const std::vector<KeyBlock>& blocks) {
  const auto found = find_key_blocks(blocks.back().end, layout(blocks));
  EXPECT_TRUE(found) << found.error().message;
  return found ? *found : KeyBlocks{};
}

TEST(KeyBlocksTest, FindsWhatWasDrawn) {
  const std::vector<std::vector<KeyBlock>> drawings = {
      {{0, 9, 0, 0}},
      {{0, 4, 0, 0}, {4, 8, 0, 1}, {8, 9, 0, 2}},
      {{0, 4, 0, 2}, {4, 8, 0, 1}, {8, 11, 0, 0}},
      {{0, 1, 0, 0}, {1, 2, 0, 1}, {2, 3, 0, 2}, {3, 4, 0, 3}},
      {{0, 3, 0, 1}, {3, 6, 0, 0}, {6, 9, 1, 1}, {9, 10, 1, 0}},
      {{0, 5, 0, 0}, {5, 10, 1, 0}, {10, 12, 2, 0}},
      {{0, 5, 0, 1}, {5, 10, 0, 0}, {10, 12, 0, 2}},
  };
  for (const auto& drawing : drawings) EXPECT_EQ(found_in(drawing).blocks, drawing);
}

TEST(KeyBlocksTest, SaysDirectionSizeAndSplits) {
  const KeyBlocks up = found_in({{0, 4, 0, 0}, {4, 8, 0, 1}, {8, 9, 0, 2}});
  EXPECT_EQ(up.direction(), KeyDirection::first_to_last);
  EXPECT_EQ(up.block_size(), 4);
  EXPECT_TRUE(up.is_uniform());
  const KeyBlocks down = found_in({{0, 3, 0, 1}, {3, 6, 0, 0}, {6, 9, 1, 1}, {9, 10, 1, 0}});
  EXPECT_EQ(down.direction(), KeyDirection::last_to_first);
  EXPECT_EQ(down.splits(), 2);
  EXPECT_EQ(down.keys_of_split(1), (std::vector<std::int64_t>{6, 7, 8, 9}));
  const KeyBlocks both = found_in({{0, 5, 0, 1}, {5, 7, 0, 0}, {7, 10, 0, 2}});
  EXPECT_EQ(both.direction(), KeyDirection::other);
  EXPECT_FALSE(both.is_uniform());
  EXPECT_EQ(found_in({{0, 9, 0, 0}}).direction(), KeyDirection::not_seen);
}

TEST(KeyBlocksTest, RefusesAnswersThatFitNoBlocks) {
  // Key 0 and key 2 know of each other, key 1 between them of neither.
  const AskKnowing odd = [](std::int64_t raised) -> Result<KnowingKeys> {
    return raised == 1 ? KnowingKeys{0, 1, 0} : KnowingKeys{1, 0, 1};
  };
  const auto found = find_key_blocks(3, odd);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::cannot_tell);
  const auto limited = find_key_blocks(9, layout({{0, 3, 0, 0}, {3, 9, 0, 1}}), 2);
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().kind, ErrorKind::cannot_tell);
}

AttentionLayer small_layer(std::int64_t keys) {
  return {.shape = {.query_heads = 2, .kv_heads = 1, .kv_len = keys, .head_dim = 32},
          .format = softfloat::bfloat16};
}

AttentionRevelation revealed(Backend& backend, const AttentionLayer& layer) {
  AttentionCalls calls(backend, layer);
  auto found = reveal_attention(calls, {.least_outputs = 100});
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : AttentionRevelation{};
}

TEST(RevealAttention, TellsFlashAttention3ByItsBits) {
  const auto backend = make_sim_backend("h100-fa3");
  ASSERT_TRUE(backend);
  AttentionLayer layer = small_layer(400);
  layer.attributes = {{"splits", "2"}};
  const AttentionRevelation found = revealed(**backend, layer);
  EXPECT_EQ(found.blocks.blocks,
            (std::vector<KeyBlock>{{0, 192, 0, 1}, {192, 384, 0, 0}, {384, 400, 1, 0}}));
  EXPECT_EQ(found.rescale, RescaleRule::every_rise);
  ASSERT_TRUE(found.merge);
  EXPECT_EQ(merge_text(*found.merge), "sequential");
  ASSERT_TRUE(found.explained());
  EXPECT_EQ(found.replay.kernels.front().kernel, "h100-fa3");
  EXPECT_TRUE(found.replay.kernels.front().same_tree);
}

/// A row of the table with something else in it, which says that it is the row.
class Liar final : public Backend {
 public:
  Liar(const AttentionKernel& kernel, const TileRule& rule, std::int64_t splits)
      : kernel_(kernel), rule_(rule), splits_(splits) {
    kernel_.tiles = &rule_;
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
    problem.launch.splits = splits_;
    auto result = run_attention(kernel_, problem);
    if (!result) return result.error();
    return Tensor{problem.storage, q, std::move(result->out)};
  }
  [[nodiscard]] Result<bool> set_threads(std::int64_t /*n*/) override { return true; }

 private:
  AttentionKernel kernel_;
  TileRule rule_;
  std::int64_t splits_;
};

TEST(RevealAttention, CatchesWhatTheTableDoesNotSay) {
  const AttentionKernel& kernel = *find_attention_kernel("h100-fa3");
  AttentionLayer layer = small_layer(400);
  layer.attributes = {{"splits", "1"}};

  Liar honest(kernel, *kernel.tiles, 1);
  EXPECT_TRUE(revealed(honest, layer).explained());

  TileRule turned = *kernel.tiles;
  turned.last_to_first = false;
  Liar direction(kernel, turned, 1);
  const AttentionRevelation upward = revealed(direction, layer);
  EXPECT_EQ(upward.blocks.direction(), KeyDirection::first_to_last);
  EXPECT_FALSE(upward.explained());
  ASSERT_TRUE(upward.replay.failing);
  EXPECT_LE(upward.replay.failing->keys.size(), 64U);

  constexpr TileColumns narrow[] = {{.head_dim = 64, .columns = 160, .split_columns = 160}};
  TileRule smaller = *kernel.tiles;
  smaller.tiles = narrow;
  Liar block(kernel, smaller, 1);
  const AttentionRevelation narrower = revealed(block, layer);
  EXPECT_EQ(narrower.blocks.block_size(), 160);
  EXPECT_FALSE(narrower.explained());

  // The caller's number of splits is dropped.
  Liar split(kernel, *kernel.tiles, 2);
  const AttentionRevelation in_two = revealed(split, layer);
  EXPECT_EQ(in_two.blocks.splits(), 2);
  EXPECT_FALSE(in_two.explained());

  TileRule lazy = *kernel.tiles;
  lazy.rescale_threshold = 5;
  Liar threshold(kernel, lazy, 1);
  const AttentionRevelation beyond = revealed(threshold, layer);
  EXPECT_EQ(beyond.rescale, RescaleRule::beyond_rise);
  EXPECT_LE(beyond.largest_kept_rise, 5);
  EXPECT_GT(beyond.smallest_rescaled_rise, 5);
  EXPECT_LT(beyond.smallest_rescaled_rise - beyond.largest_kept_rise, 0.1);
}

TEST(RevealAttention, SaysWhatElseChangesTheBits) {
  const auto backend = make_sim_backend("torch-cpu");
  ASSERT_TRUE(backend);
  AttentionLayer layer = small_layer(40);
  layer.shape.query_len = 5;
  layer.shape.kv_heads = 2;
  const auto found = attention_dependences(**backend, layer, 1);
  ASSERT_TRUE(found) << found.error().message;
  for (const Dependence& one : *found) {
    // One row goes through the keys in groups of four, several rows in passes.
    EXPECT_EQ(one.different > 0, one.what == "the last query alone") << one.what;
    EXPECT_TRUE(one.possible) << one.what;
  }
  layer.shape.query_len = 1;
  const auto alone = attention_dependences(**backend, layer, 1);
  ASSERT_TRUE(alone);
  for (const Dependence& one : *alone) {
    const bool needs_queries =
        one.what == "numbers of the other queries" || one.what == "the last query alone";
    EXPECT_EQ(one.possible, !needs_queries) << one.what;
  }
}

}  // namespace
}  // namespace kvsim::gpu
