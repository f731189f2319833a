// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/decoder/incremental.h"
#include "tests/sim/decoder/tiny_model.h"

/// What must be equal bit for bit, whatever the kernels compute.
namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using test::arm;
using test::decoder_of;
using test::logits_of;
using test::run_passes;
using test::some_tokens;
using test::TinyModel;

constexpr std::int64_t length = test::sequence_length;

// Cache constructors, by the lengths of their passes.
const std::vector<std::vector<std::int64_t>> constructors{
    std::vector<std::int64_t>(length, 1),  // all-token-wise
    {length},                              // one-shot, and the last pass of off
    {8, 8, 8},                             // chunked
    test::live_passes,
};

TEST(DecoderInvariants, EveryConstructorIsEqualWhereKernelsAreInvariant) {
  const TinyModel model(test::full_shape());
  for (const std::string_view dispatch :
       {"batch-invariant", "batch-invariant-fp32", "exact", "exact-sums"}) {
    for (const softfloat::Format& storage : {bfloat16, binary16, binary32}) {
      if (dispatch == "batch-invariant" && storage == binary32) continue;  // FA2 has none
      SCOPED_TRACE(dispatch);
      const std::vector<double> live = logits_of(model, arm(dispatch, storage), test::live_passes);
      for (const std::vector<std::int64_t>& lengths : constructors) {
        EXPECT_EQ(logits_of(model, arm(dispatch, storage), lengths), live) << lengths.size();
      }
    }
  }
  // Where kernels change with the number of rows, the same comparison finds it.
  for (const std::string_view dispatch : {"h100-fa3", "a100-fa2", "torch-cpu"}) {
    SCOPED_TRACE(dispatch);
    const softfloat::Format& storage = dispatch == "torch-cpu" ? binary32 : binary16;
    EXPECT_NE(logits_of(model, arm(dispatch, storage), constructors[0]),
              logits_of(model, arm(dispatch, storage), constructors[1]));
  }
}

// Sequences longer than a tile. FlashAttention-3 walks other tiles for one query than for many, so
// that probabilities are rounded against other running maxima, even when nothing is split.
TEST(DecoderInvariants, TilesOfABatchInvariantKernelDoNotDependOnTheQueries) {
  DecoderShape shape = test::tiny_shape();
  shape.layers = 1;
  const TinyModel model(shape);
  constexpr std::int64_t longer = 200;
  const auto differing = [&](const DecoderArmOptions& options) {
    std::vector<std::vector<double>> logits;
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>(longer, 1), {longer}, {130, 64, 6}}) {
      IncrementalDecoder decoder = decoder_of(model, options);
      KvCache cache = decoder.new_cache();
      logits.push_back(run_passes(decoder, cache, some_tokens(longer), lengths));
    }
    std::ptrdiff_t count = 0;
    for (std::size_t i = 0; i < logits[0].size(); ++i) {
      if (logits[0][i] != logits[1][i] || logits[0][i] != logits[2][i]) ++count;
    }
    return count;
  };
  DecoderArmOptions options = arm("batch-invariant");
  EXPECT_EQ(differing(options), 0);
  ASSERT_TRUE(options.dispatch.set("attention.prefill", "fa3.split1"));
  ASSERT_TRUE(options.dispatch.set("attention.decode", "fa3.split1"));
  EXPECT_GT(differing(options), 0);
}

TEST(DecoderInvariants, ReplicasThreadsAndRebuiltCachesAreEqual) {
  const TinyModel model(test::full_shape());
  const std::vector<std::int32_t> tokens = some_tokens(length);
  DecoderArmOptions options = arm("h100-fa3");
  IncrementalDecoder decoder = decoder_of(model, options);
  KvCache cache = decoder.new_cache();
  const std::vector<double> live = run_passes(decoder, cache, tokens, test::live_passes);
  // Token-wise: the same passes again, from an empty cache, one token further each time.
  for (const std::size_t steps : {std::size_t{5}, test::live_passes.size()}) {
    KvCache rebuilt = decoder.new_cache();
    const std::vector<std::int64_t> lengths(
        test::live_passes.begin(), test::live_passes.begin() + static_cast<std::ptrdiff_t>(steps));
    const std::vector<double> again = run_passes(decoder, rebuilt, tokens, lengths);
    EXPECT_TRUE(std::equal(again.begin(), again.end(), live.begin()));
    EXPECT_EQ(rebuilt.digest(2, KvPart::value, 1, 11), cache.digest(2, KvPart::value, 1, 11));
  }
  for (const int threads : {2, 7}) {
    options.engine.threads = threads;
    EXPECT_EQ(logits_of(model, options, test::live_passes), live) << threads;
  }
  options.engine = {.threads = 1, .level = SimdLevel::scalar};
  EXPECT_EQ(logits_of(model, options, test::live_passes), live);
}

TEST(DecoderInvariants, ASavedCacheGoesOnAsIfNothingHadHappened) {
  const TinyModel model(test::tiny_shape());
  const std::vector<std::int32_t> tokens = some_tokens(length);
  IncrementalDecoder decoder = decoder_of(model, arm("h100-fa3"));
  KvCache cache = decoder.new_cache();
  run_passes(decoder, cache, tokens, {12});
  const KvCache saved = cache;
  const auto next = [&](KvCache& at, std::int32_t token) {
    const std::vector<std::int32_t> one{token};
    DecoderPass pass;
    pass.tokens = one;
    pass.first_row = 12;
    return decoder.pass(at, pass).value().logits;
  };
  const std::vector<double> first = next(cache, 3);
  EXPECT_NE(next(cache, 4), first);  // row 12 is forgotten and made anew
  KvCache restored = saved;
  EXPECT_EQ(restored.rows(), 12);
  EXPECT_EQ(next(restored, 3), first);
  EXPECT_EQ(restored.rows(), 13);
}

TEST(DecoderInvariants, GroupedHeadsAreRepeatedHeads) {
  const TinyModel grouped(test::tiny_shape());
  DecoderShape shape = test::tiny_shape();
  shape.kv_heads = shape.query_heads;
  TinyModel repeated(shape);
  std::vector<std::int64_t> rows;
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    for (std::int64_t i = 0; i < shape.head_dim; ++i) {
      rows.push_back(head / 2 * shape.head_dim + i);
    }
  }
  const DecoderWeights& from = grouped.weights();
  repeated.weights() = from;
  for (std::size_t i = 0; i < from.layers.size(); ++i) {
    repeated.weights().layers[i].key = repeated.with_rows(from.layers[i].key, rows);
    repeated.weights().layers[i].value = repeated.with_rows(from.layers[i].value, rows);
  }
  for (const std::string_view dispatch : {"exact", "batch-invariant", "torch-cpu", "binary64"}) {
    SCOPED_TRACE(dispatch);
    EXPECT_EQ(logits_of(grouped, arm(dispatch), test::live_passes),
              logits_of(repeated, arm(dispatch), test::live_passes));
  }
  // The wrong group is seen.
  std::ranges::rotate(rows, rows.begin() + shape.head_dim);
  repeated.weights().layers[0].key = repeated.with_rows(from.layers[0].key, rows);
  EXPECT_NE(logits_of(grouped, arm("exact"), test::live_passes),
            logits_of(repeated, arm("exact"), test::live_passes));
}

}  // namespace
}  // namespace kvsim
