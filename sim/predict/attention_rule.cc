// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/attention_rule.h"

#include <fmt/format.h>

#include "sim/attention/splits.h"

namespace kvsim {
namespace {

std::string queries_text(std::int64_t queries) {
  return queries == 1 ? std::string("1 query") : fmt::format("{} queries", queries);
}

}  // namespace

std::string attention_rule(const AttentionKernel& kernel, const AttentionShape& shape,
                           const AttentionMask& mask, const AttentionLaunch& launch) {
  switch (kernel.family) {
    case AttentionFamily::eager:
      return fmt::format("{}: all {} keys", kernel.name, shape.kv_len);
    case AttentionFamily::online_tiles: {
      const SplitPlan plan = plan_splits(kernel, shape, mask, launch);
      if (plan.splits == 1) {
        return fmt::format("{}: not split, blocks of {}", kernel.name, plan.block_columns);
      }
      if (plan.tile_rows == 0) {
        return fmt::format("{}: {} splits of {} keys, blocks of {}", kernel.name, plan.splits,
                           plan.size, plan.block_columns);
      }
      // A split's share depends on the blocks that a tile of rows visits.
      return fmt::format("{}: {} splits, blocks of {}, {} on {} keys", kernel.name, plan.splits,
                         plan.block_columns, queries_text(shape.query_len), shape.kv_len);
    }
    case AttentionFamily::paged:
    case AttentionFamily::torch_cpu:
    case AttentionFamily::llama_cpu:
      break;
  }
  // What else these kernels look at: the number of queries, of sequences and of heads.
  return fmt::format("{}: {} on {} keys, batch {}, {} heads", kernel.name,
                     queries_text(shape.query_len), shape.kv_len, launch.batch, shape.query_heads);
}

}  // namespace kvsim
