// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <string>

#include "cli/kernels/entry.h"
#include "sim/attention/kernel.h"

namespace kvsim {
namespace {

std::string with_product(std::string_view order, Product product) {
  if (order.empty()) return "docs/attention.md";
  const std::string products = product_text(order, product);
  return products.empty() ? std::string(order) : fmt::format("{}, {}", order, products);
}

std::string_view fold_text(ExponentFold fold) {
  switch (fold) {
    case ExponentFold::fused_rescale:
      return "fma(s, scale_log2, -m·scale_log2), the rescale likewise";
    case ExponentFold::unfused:
      return "s·scale_log2 - m·scale_log2, each rounded";
    case ExponentFold::natural:
      return "s - m, of scores that are scaled first; base e";
    case ExponentFold::fused:
      break;
  }
  return "fma(s, scale_log2, -m·scale_log2)";
}

std::string_view row_sum_text(RowSumRule rule) {
  switch (rule) {
    case RowSumRule::packed:
      return "packed: eight partial sums of a block";
    case RowSumRule::unit:
      return "unit: the matrix unit sums rounded probabilities";
    case RowSumRule::butterfly:
      return "butterfly over the columns of a block";
    case RowSumRule::quad:
      break;
  }
  return "quad: four threads, adjacent columns";
}

/// Of a row whose every score so far is −∞.
std::string unrisen_text(const TileRule& rule) {
  switch (rule.unrisen) {
    case UnrisenMaximum::zero_in_exponents:
      return "p = 0, the rescale 0 in blocks that hide keys or under a window, else NaN";
    case UnrisenMaximum::zero_where_masked:
      return "p = 0 in the first block and in blocks that hide keys, else NaN";
    case UnrisenMaximum::finite:
      return fmt::format("p = 0: the maximum starts at {}", rule.first_maximum);
    case UnrisenMaximum::finite_mask:
      return fmt::format("O·0: the maximum starts at {}, the score of hidden keys",
                         rule.first_maximum);
    case UnrisenMaximum::zero:
      break;
  }
  return "p = 0";
}

std::string_view policy_text(SplitPolicy policy) {
  switch (policy) {
    case SplitPolicy::wave_efficiency:
      return "the fewest with 85 % of the best wave efficiency";
    case SplitPolicy::fill_multiprocessors:
      return "as many as multiprocessors are left";
    case SplitPolicy::chunk_search:
      return "the smallest chunk with which the launch fits";
    case SplitPolicy::never:
      break;
  }
  return "never";
}

std::string_view merge_text(SplitMerge merge) {
  switch (merge) {
    case SplitMerge::normalized_weights:
      return "weights exp(lse - M) ÷ Σ";
    case SplitMerge::base2_normalized_weights:
      return "weights exp2(lse·log2 e - M·log2 e) ÷ Σ";
    case SplitMerge::serial_states:
      return "states joined one after another";
    case SplitMerge::log_sum_weights:
      break;
  }
  return "weights exp(lse - total lse)";
}

std::string_view soft_cap_text(SoftCapRule rule) {
  switch (rule) {
    case SoftCapRule::folded_reciprocal:
      return "tanh(s·(scale·(1 ÷ c))), the scale becomes c";
    case SoftCapRule::divided:
      return "c·tanh(s·scale ÷ c)";
    case SoftCapRule::scaled_before:
      return "c·tanh(s), of a query scaled by scale ÷ c";
    case SoftCapRule::folded:
      break;
  }
  return "tanh(s·(scale ÷ c)), the scale becomes c";
}

std::string_view log_sum_text(LogSumRule rule) {
  switch (rule) {
    case LogSumRule::by_scale_log2:
      return "fma(m, scale_log2·ln 2, log l)";
    case LogSumRule::base_2:
      return "(m·scale_log2 + log2 l)·ln 2";
    case LogSumRule::fused_base_2:
      return "fma(m, scale_log2, log2 l)·ln 2";
    case LogSumRule::by_scale:
      break;
  }
  return "fma(m, scale, log l)";
}

/// "64: 128, 256 if split; 128: 128".
std::string tiles_text(const TileRule& rule) {
  std::string text;
  for (const TileColumns& tile : rule.tiles) {
    text +=
        fmt::format("{}head_dim ≤ {}: {}", text.empty() ? "" : "; ", tile.head_dim, tile.columns);
    if (tile.split_columns != tile.columns) {
      text += fmt::format(", {} if split or paged", tile.split_columns);
    }
    if (tile.narrow_columns == 0) continue;
    std::string when;
    for (const auto& [holds, name] : {std::pair(tile.narrow_if_causal, "causal"),
                                      std::pair(tile.narrow_if_windowed, "windowed"),
                                      std::pair(tile.narrow_if_paged, "paged")}) {
      if (holds) when += fmt::format("{}{}", when.empty() ? "" : " or ", name);
    }
    text += fmt::format(", {} if {}", tile.narrow_columns, when);
  }
  return text;
}

void add_tiles(const TileRule& rule, KernelParameters& out) {
  out.emplace_back("keys of a block", tiles_text(rule));
  out.emplace_back("direction", rule.last_to_first ? "last block to first" : "first block to last");
  out.emplace_back("exponent", fold_text(rule.fold));
  out.emplace_back("scale·log2 e",
                   rule.scale_log2_in_binary32 ? "rounded in binary32" : "rounded from binary64");
  if (rule.rescale_threshold > 0) {
    out.emplace_back("rescale", fmt::format("only where the maximum grew by more than {} in log2",
                                            rule.rescale_threshold));
  }
  if (rule.emulated_exponentials) out.emplace_back("exp", "some columns take a cubic polynomial");
  if (rule.maximum_offset != 0) {
    out.emplace_back("maximum", fmt::format("of scores + {}", rule.maximum_offset));
  }
  if (rule.flush_below != 0) {
    out.emplace_back("probabilities",
                     fmt::format("0 where the exponent is below {}", rule.flush_below));
  }
  out.emplace_back("scores of −∞", unrisen_text(rule));
  out.emplace_back("row sum", row_sum_text(rule.row_sum));
  out.emplace_back("splits", policy_text(rule.split.policy));
  if (rule.split.policy != SplitPolicy::never) {
    const SplitRule& split = rule.split;
    out.emplace_back(
        "rows of a tile",
        fmt::format("{}{}{}", split.tile_rows,
                    split.small_head_tile_rows == 0
                        ? std::string()
                        : fmt::format(", {} for head_dim ≤ {}", split.small_head_tile_rows,
                                      split.small_head_dim),
                    split.tall_tile_rows == 0
                        ? std::string()
                        : fmt::format(", {} where there are more rows", split.tall_tile_rows)));
    out.emplace_back("what is split", split.divides_visited_blocks
                                          ? "the blocks that a tile of rows visits"
                                          : "the keys");
    out.emplace_back("not split up to", fmt::format("{} blocks", split.whole_blocks));
    if (split.shares_among_sequences) {
      out.emplace_back("lengths that differ", "splits are shared among the sequences of a launch");
    }
    out.emplace_back("merge", merge_text(rule.merge));
  }
  out.emplace_back("operands", rule.operands_in_half ? "converted to binary16" : "as stored");
  out.emplace_back("output",
                   fmt::format("O {}, {}", rule.divides ? "÷ l" : "· (1 ÷ l)",
                               rule.output_in_binary32 ? "in binary32" : "rounded to storage"));
  out.emplace_back("soft cap", soft_cap_text(rule.soft_cap));
  out.emplace_back("lse", log_sum_text(rule.log_sum));
}

void add_eager(const EagerRule& rule, KernelParameters& out) {
  if (!rule.scores_kernel.empty()) {
    out.emplace_back("q·k", fmt::format("linear kernel {}", rule.scores_kernel));
    out.emplace_back("P·V", fmt::format("linear kernel {}", rule.values_kernel));
    out.emplace_back("softmax", fmt::format("softmax kernel {}", rule.softmax_kernel));
    out.emplace_back("scale", "on the scores");
    out.emplace_back("scores", "rounded to storage");
    return;
  }
  out.emplace_back("scale", rule.scale_on_both ? "√scale on q and on k" : "on the scores");
  out.emplace_back("scores", "rounded to storage");
  out.emplace_back("softmax",
                   rule.softmax_in_storage ? "every step rounded to storage" : "in binary32");
  out.emplace_back("probabilities", "e ÷ l");
  out.emplace_back("row sum", std::string(rule.row_sum));
  out.emplace_back("exp",
                   rule.exp == SoftmaxExp::gpu ? "of the GPU, bounded" : "correctly rounded");
}

void add_torch_cpu(const TorchCpuRule& rule, KernelParameters& out) {
  out.emplace_back("q·k",
                   fmt::format("linear kernel {}, for each block of 512 keys", rule.scores_kernel));
  out.emplace_back("row sum", fmt::format("{} lanes", rule.lanes));
  out.emplace_back("exp of the tail", std::string(to_string(rule.tail_exp)));
  out.emplace_back("exp of the rescale factor", std::string(to_string(rule.rescale_exp)));
}

void add_paged(const PagedRule& rule, KernelParameters& out) {
  switch (rule.version) {
    case PagedRule::Version::chosen:
      out.emplace_back("version",
                       "v1 up to 8192 keys with one partition or more than 512 heads, "
                       "else v2");
      break;
    case PagedRule::Version::v1:
      out.emplace_back("version", "v1");
      break;
    case PagedRule::Version::v2:
      out.emplace_back("version", "v2: partitions of 512 keys, outputs rounded to storage");
      break;
  }
}

}  // namespace

std::vector<KernelEntry> attention_entries() {
  std::vector<KernelEntry> entries;
  for (const AttentionKernel& row : attention_kernels()) {
    KernelParameters parameters{{"family", std::string(to_string(row.family))}};
    if (row.multiprocessors > 0) {
      parameters.emplace_back("multiprocessors", fmt::format("{}", row.multiprocessors));
    }
    const bool by_kernels =
        row.torch_cpu != nullptr || (row.eager != nullptr && !row.eager->scores_kernel.empty());
    for (const StorageSums& sums : row.storages) {
      if (by_kernels) break;
      const std::string_view name = softfloat::format_name(sums.storage);
      parameters.emplace_back(fmt::format("{}: q·k", name),
                              with_product(sums.scores, sums.product));
      parameters.emplace_back(fmt::format("{}: P·V", name),
                              with_product(sums.values, sums.product));
    }
    if (row.eager != nullptr) add_eager(*row.eager, parameters);
    if (row.tiles != nullptr) add_tiles(*row.tiles, parameters);
    if (row.paged != nullptr) add_paged(*row.paged, parameters);
    if (row.torch_cpu != nullptr) add_torch_cpu(*row.torch_cpu, parameters);
    entries.push_back({std::string(row.name),
                       {},
                       row.device,
                       row.source,
                       row.date,
                       row.evidence,
                       row.note,
                       std::move(parameters)});
  }
  return entries;
}

}  // namespace kvsim
