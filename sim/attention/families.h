// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/attention/observer.h"
#include "sim/attention/run.h"
#include "sim/exp_models.h"
#include "softfloat/index.h"

/// What run_attention() hands to the algorithm of a family, and what they share.
namespace kvsim::attention {

/// Numbers that a family may keep beside q, k, v and the outputs: scores of one query of the heads
/// that share a K/V head, outputs of all splits. 16 GiB.
inline constexpr std::int64_t most_working_numbers = std::int64_t{1} << 32;

/// Rows that are computed together: the queries first … first + count − 1 of all heads that share
/// one K/V head, row = (query − first) · group + head of the group.
struct QueryTile {
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// A checked problem on its way through a family.
struct Run {
  const AttentionKernel& kernel;
  const AttentionProblem& problem;
  const AttentionOptions& options;
  const StorageSums& sums;  ///< the kernel's row for the problem's storage
  float scale = 0;          ///< the caller's or 1 ÷ √head_dim
  AttentionObserver* observer = nullptr;

  [[nodiscard]] const AttentionShape& shape() const { return problem.shape; }
  /// Threads split heads, so what works on one head uses one.
  [[nodiscard]] EngineOptions engine_of_one() const { return {1, options.engine.level}; }
  [[nodiscard]] std::int64_t head_stride() const {
    return problem.kv_head_stride > 0 ? problem.kv_head_stride : shape().kv_len * shape().head_dim;
  }
  /// K or V of the head: [kv_len][head_dim]. Floats, but for the family of online tiles.
  [[nodiscard]] NumberPointer keys(std::int64_t kv_head) const {
    return problem.k + kv_head * head_stride();
  }
  [[nodiscard]] NumberPointer values(std::int64_t kv_head) const {
    return problem.v + kv_head * head_stride();
  }
  /// Number of (query head, query): position in lse; times head_dim: in q and out.
  [[nodiscard]] std::int64_t row_of(std::int64_t head, std::int64_t query) const {
    return head * (shape().query_len - problem.first_query) + query - problem.first_query;
  }
  [[nodiscard]] std::int64_t query_of(const QueryTile& tile, std::int64_t row) const {
    return tile.first + row / shape().group();
  }
  /// Tells the observer, where there is one.
  void show(AttentionStep step, const AttentionPlace& place, std::span<const float> numbers) const {
    if (observer != nullptr) observer->see(step, place, numbers);
  }
  /// The number of a row of a tile.
  [[nodiscard]] std::int64_t row_of(const QueryTile& tile, std::int64_t row) const {
    const std::int64_t group = shape().group();
    return row_of(tile.kv_head * group + row % group, query_of(tile, row));
  }
};

/// Tiles of at most `queries` queries that cover every query of every head from `first` on.
[[nodiscard]] inline std::vector<QueryTile> query_tiles(const AttentionShape& shape,
                                                        std::int64_t first, std::int64_t queries) {
  std::vector<QueryTile> tiles;
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    for (std::int64_t i = first; i < shape.query_len; i += queries) {
      tiles.push_back({head, i, std::min(queries, shape.query_len - i)});
    }
  }
  return tiles;
}

/// Queries of a tile whose scores for every key are in memory at once; changes no bit.
[[nodiscard]] inline std::int64_t queries_with_all_scores(const AttentionShape& shape) {
  constexpr std::int64_t most_scores = std::int64_t{1} << 20;
  constexpr std::int64_t most_queries = 64;
  return std::clamp<std::int64_t>(most_scores / (shape.kv_len * shape.group()), 1,
                                  std::min(shape.query_len, most_queries));
}

/// The score of a key that a query doesn't see.
inline constexpr float no_score = -std::numeric_limits<float>::infinity();

/// 2^x as a GPU computes it: ex2.approx with the caller's table or error.
[[nodiscard]] inline ExpFunction gpu_exp2(const Run& run) {
  return ExpFunction(ExpModel::ex2_approx, run.options.exp.value_or(ExpOptions{}));
}

/// e^x of binary32 code: correctly rounded, but for a GPU whose caller gives a table or an error
/// exp2(x · log2 e) on ex2.approx.
[[nodiscard]] inline ExpFunction gpu_exp_base_e(const Run& run, bool gpu) {
  return gpu && run.options.exp ? gpu_exp2(run) : ExpFunction(ExpModel::correctly_rounded);
}

/// K or V, all heads, as floats: [kv_heads][kv_len][head_dim].
[[nodiscard]] std::vector<float> read_heads(const Run& run, NumberPointer numbers);

/// The families. `result.out` and `result.lse` have their sizes; lse is −∞ and out +0 everywhere.
[[nodiscard]] Result<bool> run_eager(const Run& run, AttentionResult& result);
[[nodiscard]] Result<bool> run_online_tiles(const Run& run, AttentionResult& result);
[[nodiscard]] Result<bool> run_paged(const Run& run, AttentionResult& result);
[[nodiscard]] Result<bool> run_torch_cpu(const Run& run, AttentionResult& result);
[[nodiscard]] Result<bool> run_llama_cpu(const Run& run, AttentionResult& result);

/// The kernel's row for the problem's storage, or what of sizes, mask or launch cannot be. q, k and
/// v are not read.
[[nodiscard]] Result<const StorageSums*> check_problem(const AttentionKernel& kernel,
                                                       const AttentionProblem& problem);

/// What a family cannot do, as an error; true otherwise.
[[nodiscard]] Result<bool> check_online_tiles(const AttentionKernel& kernel,
                                              const AttentionProblem& problem);
[[nodiscard]] Result<bool> check_paged(const AttentionKernel& kernel,
                                       const AttentionProblem& problem);
[[nodiscard]] Result<bool> check_llama_cpu(const AttentionKernel& kernel,
                                           const AttentionProblem& problem);

/// Keys of one partition of paged attention: all of them in v1.
[[nodiscard]] std::int64_t keys_of_partition(const AttentionKernel& kernel,
                                             const AttentionProblem& problem);
/// Keys that one thread of llama.cpp takes: all of them, unless one query's are split.
[[nodiscard]] std::int64_t keys_of_chunk(const AttentionProblem& problem);

}  // namespace kvsim::attention
