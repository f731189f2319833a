// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>

#include "fuzz/flip/bound_planner.h"
#include "sim/attention/families.h"
#include "sim/attention/splits.h"
#include "softfloat/formats.h"

/// Kernels that look at keys block by block, or page by page.
namespace kvsim::fuzz {
namespace {

using attention::KeyRange;

constexpr double u = binary32_roundoff;

/// Blocks of the part that has most.
std::int64_t most_blocks(const BoundPlan& plan) {
  std::int64_t most = 1;
  for (const KeyRange& part : plan.parts) {
    most = std::max(most, (part.size() + plan.block - 1) / plan.block);
  }
  return most;
}

}  // namespace

void Planner::cut_into_splits() {
  const SplitPlan splits = plan_splits(kernel_, shape_, problem_.mask, problem_.launch);
  plan_.block = splits.block_columns;
  if (splits.splits == 1) return;
  plan_.parts.clear();
  const std::int64_t row = (shape_.query_len - 1) * shape_.group();  // of the last query
  const std::int64_t tile = splits.tile_rows > 0 ? row / splits.tile_rows : 0;
  const std::int64_t last_tile =
      splits.tile_rows > 0 ? (row + shape_.group() - 1) / splits.tile_rows : 0;
  known_splits_ = tile == last_tile;
  for (std::int64_t s = 0; s < splits.splits; ++s) {
    const KeyRange keys = split_keys(splits, shape_, problem_.mask, tile, s);
    if (!keys.empty()) plan_.parts.push_back(keys);
  }
}

Result<bool> Planner::tiles(const TileRule& rule) {
  Result<bool> done = take_sums(sums_.scores, sums_.values);
  if (!done) return done;
  if (!plan_.values.is_chain) return no_bound_for(kernel_.name, "its products are no chain");
  cut_into_splits();
  if (!known_splits_) return no_bound_for(kernel_.name, "its tiles cut a group of heads");
  plan_.last_to_first = rule.last_to_first;
  // Scale · log2 e as a constant, the product or difference, and log2 e on ex2's side.
  plan_.per_gap = rule.fold == ExponentFold::natural ? 3.1 : 6.1;
  plan_.per_magnitude = rule.fold == ExponentFold::unfused ? 2 : 0;
  plan_.fixed = 2;
  plan_.beyond = std::max(static_cast<double>(rule.rescale_threshold) * 0.7,
                          static_cast<double>(rule.maximum_offset));
  plan_.scale_is_known = rule.rescale_threshold == 0;
  plan_.exponential = rule.emulated_exponentials ? exponential_error(ExpModel::fa4_polynomial) : 0;
  if (rule.flush_below < 0) {
    plan_.dropped_beyond =
        -static_cast<double>(rule.flush_below) - static_cast<double>(rule.maximum_offset) - 0.01;
  }
  if (rule.unrisen == UnrisenMaximum::finite_mask) {
    plan_.lowest_maximum =
        static_cast<double>(rule.first_maximum) / std::sqrt(count(shape_.head_dim));
  }
  plan_.sums_stored = rule.row_sum == RowSumRule::unit;
  plan_.rescaling = 1.01 * u;
  if (rule.operands_in_half) operands_in_half();
  const UnitErrors& unit = plan_.values.chain;
  const double blocks_of_unit = std::ceil(count(plan_.block) / count_of(unit.fan_in));
  const double per_block =
      plan_.sums_stored ? blocks_of_unit * (unit.conversion + count_of(unit.fan_in + 3) * unit.cut +
                                            unit.sum_cut + unit.final_cut)
                        : (count(plan_.block) / 4 + 4) * u;
  const double in_sequence = count(most_blocks(plan_)) * (per_block + 2 * u) + 8 * u;
  plan_.row_sum = in_sequence < 0.5 ? outward(in_sequence / (1 - in_sequence)) : no_bound;
  plan_.finish = 2.1;
  if (plan_.parts.size() > 1) {
    merge_by(rule.merge);
  }
  return true;
}

void Planner::merge_by(SplitMerge merge) {
  const double parts = count_of(plan_.parts.size());
  plan_.merge = PartMerge::normalized;
  plan_.merge_fixed = parts + 16;
  plan_.merge_roundings = 3 * parts + 4;
  switch (merge) {
    case SplitMerge::log_sum_weights:
      plan_.merge = PartMerge::unnormalized;
      plan_.merge_per_magnitude = 6;
      break;
    case SplitMerge::normalized_weights:
      plan_.merge_per_magnitude = 8;
      break;
    case SplitMerge::base2_normalized_weights:
      plan_.merge_per_magnitude = 13;
      break;
    case SplitMerge::serial_states:
      plan_.merge_per_magnitude = 10 + 2 * parts;
      plan_.merge_fixed = 6 * parts + 16;
      break;
  }
}

void Planner::operands_in_half() {
  const RoundingUnits half(softfloat::binary16);
  plan_.stored = half;
  // The factor, its product, both rounded to binary16; storage that is wider is rounded first.
  plan_.factor_error = 5.02 * half.unit_roundoff;
  plan_.factors_are_exact = false;
  if (plan_.values.chain.conversion > u) {
    // The factor and its product with the outputs.
    plan_.rescaling = 2.01 * half.unit_roundoff;
    plan_.rescaling_quantum = half.half_quantum;
  }
}

Result<bool> Planner::paged() {
  const std::int64_t keys = attention::keys_of_partition(kernel_, problem_);
  const std::int64_t page = problem_.launch.page_size;
  const double group = std::max<double>(32.0 / count(page), 1);
  const double vector = std::max<double>(8 / group, 1);
  // Components of a thread one after another, then both joined.
  plan_.scores =
      SumErrors::of_height(std::ceil(count(shape_.head_dim) / (group * vector)) + vector + 6);
  plan_.score_roundings = 2.2;
  plan_.per_gap = 3.1;
  plan_.fixed = 3;
  plan_.divided_first = true;
  plan_.division = 2.1 * u;
  // The sum, at least 1, is divided by with 1e−6 added.
  constexpr double offset = 1.01e-6;
  plan_.row_sum = roundings(std::ceil(count(std::min(keys, shape_.kv_len)) / 128) + 9) + offset;
  // Products rounded to storage, in binary16 8 of them also added so; then pages and threads.
  const double stored_steps = problem_.storage == softfloat::binary16 ? 4 : 1;
  const double steps = std::ceil(count(std::min(keys, shape_.kv_len)) / (4 * count(page))) + 16;
  plan_.values = SumErrors::of_height(steps);
  plan_.values.relative =
      outward(plan_.values.relative + roundings(stored_steps, storage_.unit_roundoff) * 1.01);
  plan_.values.term_quantum = 2 * storage_.half_quantum;
  if (keys >= shape_.kv_len) return true;
  plan_.parts.clear();
  for (std::int64_t first = 0; first < shape_.kv_len; first += keys) {
    plan_.parts.push_back({first, std::min(first + keys, shape_.kv_len)});
  }
  plan_.merge = PartMerge::normalized;
  plan_.stored_parts = storage_;
  plan_.merge_per_magnitude = 4;
  plan_.merge_fixed = 12;
  plan_.merge_offset = offset;
  plan_.merge_roundings = 3 * count_of(plan_.parts.size()) + 4;
  return true;
}

}  // namespace kvsim::fuzz
