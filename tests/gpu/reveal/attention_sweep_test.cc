// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Sizes of attention grouped by how they are added: boundaries of the simulator's kernels, and of a
// back end that changes its kernel where only it knows.
#include "gpu/reveal/attention/attention_sweep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/reveal/size_search.h"
#include "gpu/sim_backend.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;

/// "1-3" of every class.
std::vector<std::string> texts(const std::vector<AttentionSizes>& classes) {
  std::vector<std::string> all;
  for (const AttentionSizes& one : classes) {
    all.push_back(fmt::format("{}-{}", one.sizes.first, one.sizes.last));
  }
  return all;
}

/// One kernel below a number of keys, another one from it on.
class Switching final : public Backend {
 public:
  Switching(std::unique_ptr<Backend> below, std::unique_ptr<Backend> from, std::int64_t keys)
      : below_(std::move(below)), from_(std::move(from)), keys_(keys) {}
  [[nodiscard]] std::string name() const override { return "switching"; }
  [[nodiscard]] Fingerprint fingerprint() const override { return {}; }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override { return {}; }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    return (call.inputs[1].shape[1] < keys_ ? below_ : from_)->run(call);
  }
  [[nodiscard]] Result<bool> set_threads(std::int64_t /*n*/) override { return true; }

 private:
  std::unique_ptr<Backend> below_;
  std::unique_ptr<Backend> from_;
  std::int64_t keys_;
};

AttentionLayer layer(const softfloat::Format& format, std::int64_t keys) {
  return {.shape = {.query_heads = 1, .kv_heads = 1, .kv_len = keys, .head_dim = 16},
          .format = format};
}

std::vector<AttentionSizes> swept(Backend& backend, const AttentionLayer& at, AttentionSize size,
                                  const SizeSweep& range) {
  auto found = sweep_attention(backend, at, {.least_outputs = 50}, size, range);
  EXPECT_TRUE(found) << found.error().message;
  return found ? std::move(*found) : std::vector<AttentionSizes>{};
}

// PyTorch takes queries in blocks of 32, and fewer than four of a block key by key.
TEST(AttentionSweep, GroupsNumbersOfQueriesByTheBitsOfTheLast) {
  const auto backend = make_sim_backend("torch-cpu");
  ASSERT_TRUE(backend);
  const auto classes = swept(**backend, layer(softfloat::binary32, 60), AttentionSize::queries,
                             {.first = 1, .last = 40, .every = 64});
  EXPECT_THAT(texts(classes), ElementsAre("1-3", "4-32", "33-35", "36-40"));
  for (const AttentionSizes& one : classes) EXPECT_TRUE(one.found.explained());
}

TEST(AttentionSweep, FindsWhereABackEndChangesItsKernel) {
  // Blocks of 64 or 128 keys are not yet seen: the order inside tells.
  auto below = make_sim_backend("a100-fa2");
  auto from = make_sim_backend("control-attention");
  ASSERT_TRUE(below && from);
  Switching backend(std::move(*below), std::move(*from), 37);
  const auto classes = swept(backend, layer(softfloat::bfloat16, 1), AttentionSize::keys,
                             {.first = 20, .last = 60, .every = 8});
  EXPECT_THAT(texts(classes), ElementsAre("20-36", "37-60"));
  EXPECT_EQ(classes.front().found.replay.kernels.front().kernel, "a100-fa2");
  EXPECT_EQ(to_string(classes.back().found.classes.front().orders.front()), "sequential");
}

TEST(AttentionSweep, TakesOneBlockForAnyThatIsAtLeastAsLong) {
  const auto backend = make_sim_backend("a100-fa2");
  ASSERT_TRUE(backend);
  AttentionLayer at = layer(softfloat::bfloat16, 1);
  at.attributes["splits"] = "1";
  const auto classes = swept(**backend, at, AttentionSize::keys, {.first = 126, .last = 131});
  EXPECT_THAT(texts(classes), ElementsAre("126-131"));
  ASSERT_FALSE(classes.empty());
  EXPECT_EQ(classes.front().found.blocks.block_size(), 128);
  EXPECT_EQ(classes.front().found.blocks.direction(), KeyDirection::last_to_first);
}

/// What look_at_sizes() looks at where sizes from `edges` on are classes.
std::set<std::int64_t> looked(const SizeSweep& range, const std::vector<std::int64_t>& edges) {
  const auto class_of = [&](std::int64_t size) {
    std::int64_t number = 0;
    for (const std::int64_t edge : edges) number += size >= edge ? 1 : 0;
    return number;
  };
  std::set<std::int64_t> seen;
  const auto done = look_at_sizes(
      range, [&](std::int64_t size) -> Result<bool> { return seen.insert(size).second; },
      [&] {
        std::vector<SizeClass> classes;
        std::int64_t before = -1;
        for (const std::int64_t size : seen) {
          if (class_of(size) != before) classes.push_back({size, size});
          classes.back().last = size;
          before = class_of(size);
        }
        return classes;
      });
  EXPECT_TRUE(done);
  return seen;
}

TEST(SizeSearch, LooksAtBothSidesOfEveryEdge) {
  EXPECT_EQ(looked({.first = 5, .last = 30}, {}).size(), 26);
  const auto seen = looked({.first = 1, .last = 100'000}, {777, 40'000});
  for (const std::int64_t size : {1, 776, 777, 39'999, 40'000, 100'000}) {
    EXPECT_TRUE(seen.contains(size)) << size;
  }
  EXPECT_LT(seen.size(), 70);
  EXPECT_LE(looked({.first = 1, .last = 100'000, .most = 40}, {777, 40'000}).size(), 40);
}

}  // namespace
}  // namespace kvsim::gpu
