// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/head_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/exp.h"

namespace kvsim::fuzz {
namespace {

constexpr double u = binary32_roundoff;
constexpr double flushed = 0x1p-125;     // a probability that small may become 0
constexpr double of_binary64 = 0x1p-40;  // roundings of this code itself, relative to magnitudes
constexpr double farthest = 600;         // e^farthest is a binary64, and so is its reciprocal

double exponential(double x) { return exp_reference(DoubleDouble(x)).high; }

/// Error of rounding a number of magnitude up to that.
double rounding(const RoundingUnits& units, double magnitude) {
  return std::max(units.unit_roundoff * power_of_exponent(magnitude), units.half_quantum);
}

}  // namespace

HeadBound::HeadBound(const BoundPlan& plan, const RoundingUnits& input, const ExactHead& head,
                     const ExactKeys& keys)
    : plan_(plan), input_(input), head_(head), keys_(keys), chain_(keys.v.stride()) {
  for (const double w : head.token) token_sum_ += std::abs(w);
}

/// How far the kernel's scores are from the exact ones.
void HeadBound::find_score_errors() {
  const std::size_t keys = head_.score.size();
  const SumErrors& sum = plan_.scores;
  const double scale = 1 / std::sqrt(static_cast<double>(head_.query.size()));
  UnitChain chain(keys_.k.stride());
  if (sum.is_chain) {
    const double ulp = 2 * input_.unit_roundoff;
    factors_.clear();
    factors_.reserve(head_.query.size());
    for (const double q : head_.query) {
      const double power = std::max(power_of_exponent(q), input_.smallest_normal);
      factors_.push_back({.value = q,
                          .deviation = std::abs(q) * (plan_.factor_error + of_binary64),
                          .alignment = 2 * power,
                          .quantum = 0});
      if (plan_.factors_are_exact) {
        factors_.back().alignment = power;
        factors_.back().quantum = ulp * power;
      }
    }
    const WalkFormat format{.smallest_normal = input_.smallest_normal,
                            .ulp_of_one = ulp,
                            .exponents_known = plan_.factors_are_exact};
    walk_unit_chain(sum.chain, factors_, keys_.k, 0, format, {}, chain);
  }
  score_error_.resize(keys);
  for (std::size_t j = 0; j < keys; ++j) {
    const double absolute = head_.score_absolute[j];
    const double relative =
        plan_.factor_error + (1 + plan_.factor_error) * (sum.relative + sum.products);
    double error = outward(chain.bound[j] * scale + relative * absolute + 0x1p-110);
    const double score = std::abs(head_.score[j]);
    if (plan_.stored_scores > 1) error += rounding(plan_.stored, (score + error) / scale) * scale;
    error += plan_.score_roundings * u * (score + error);
    if (plan_.stored_scores > 0) error += rounding(plan_.stored, score + error);
    error = outward(error);
    score_error_[j] = error;
    largest_error_ = std::max(largest_error_, error);
    magnitude_ = std::max(magnitude_, score + error);
  }
}

std::vector<HeadBound::Block> HeadBound::blocks_of(const attention::KeyRange& keys) const {
  const std::int64_t count = (keys.size() + plan_.block - 1) / plan_.block;
  std::vector<Block> blocks;
  blocks.reserve(static_cast<std::size_t>(count));
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t number = plan_.last_to_first ? count - 1 - i : i;
    const std::int64_t first = keys.begin + number * plan_.block;
    Block block{.first = static_cast<std::size_t>(first),
                .last = static_cast<std::size_t>(std::min(first + plan_.block, keys.end))};
    block.largest_here = *std::max_element(
        head_.score.begin() + first, head_.score.begin() + static_cast<std::int64_t>(block.last));
    block.may_rescale = i > 0 && block.largest_here > largest - 2 * largest_error_;
    largest = std::max(largest, block.largest_here);
    block.largest = largest;
    blocks.push_back(block);
  }
  double maxima = 0;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    block->maxima_after = maxima;
    if (block->may_rescale) maxima += 1;
    if (block->maxima_after == 0) continue;
    // Once for the maximum that the block is relative to, then for each change.
    const double roundings = (block->maxima_after + 1) * magnitude_ +
                             2 * (largest - block->largest) + 2 * block->maxima_after + 2;
    block->common = outward(1.02 * u * roundings);
  }
  return blocks;
}

/// Goes through the keys of a block; P·V of it, relative to the largest score so far.
void HeadBound::add_block(const Block& block, const Block* before, Sums& sums) {
  const double here = exponential(head_.largest_score - block.largest);  // e^farthest at most
  const double to_part = exponential(block.largest - part_largest_);
  const double scale = plan_.divided_first ? 1 / part_weight_ : 1;  // of what multiplies V
  const double maximum_error = 2.01 * largest_error_;
  const double base_error =
      maximum_error + block.common + (plan_.divided_first ? 2 * plan_.row_sum : 0);
  double together = 0;
  factors_.clear();
  for (std::size_t j = block.first; j < block.last; ++j) {
    const double p = head_.weight[j] * here;
    const double gap = part_largest_ - head_.score[j] + maximum_error;
    const double fixed =
        plan_.per_gap * (gap + plan_.beyond) + plan_.per_magnitude * magnitude_ + plan_.fixed;
    const double moved =
        expm1_above(outward(score_error_[j] + 1.02 * plan_.roundoff * fixed + plan_.exponential));
    const double largest_p = p * (1 + moved + base_error) + plan_.exponential_quantum;
    const double stored =
        (plan_.scale_is_known ? rounding(plan_.stored, largest_p * scale)
                              : std::max(plan_.stored.unit_roundoff * largest_p * scale,
                                         plan_.stored.half_quantum)) +
        plan_.division * largest_p * scale;
    const double deviation = (largest_p - p + of_binary64 * p) * scale + stored;

    const double final_p = p * to_part;
    const double apart = std::abs(head_.along[j] - part_difference_);
    const double moved_weight = final_p * moved + plan_.exponential_quantum * to_part + flushed;
    sums.moved += moved_weight * apart;
    sums.moved_weight += moved_weight + final_p * block.common;
    together += final_p * (head_.along[j] - part_difference_);
    const double rounded = stored / scale * to_part;
    sums.rounded += rounded * (plan_.sums_stored ? apart : std::abs(head_.along[j]));
    if (plan_.sums_stored) sums.rounded_weight += rounded;
    sums.absolute += (final_p + moved_weight + rounded) * head_.along_absolute[j];
    if (gap > plan_.dropped_beyond) {
      sums.dropped += final_p;
      sums.moved += final_p * apart;
    }
    const double value = p * scale;
    const double least = value - deviation;
    const double power = power_of_exponent(value + deviation);
    const bool known = plan_.scale_is_known && plan_.stored.half_quantum > 0;
    factors_.push_back({.value = value,
                        .deviation = deviation,
                        .alignment = plan_.scale_is_known ? power : value + deviation,
                        .quantum = known ? std::max(2 * plan_.stored.unit_roundoff *
                                                        power_of_exponent(std::max(least, 0.0)),
                                                    2 * plan_.stored.half_quantum)
                                         : 0});
  }
  sums.moved += block.common * std::abs(together);
  if (!plan_.values.is_chain) return;
  WalkRescaling rescaling;
  if (before != nullptr) rescaling.factor = exponential(before->largest - block.largest);
  if (block.may_rescale) {
    rescaling.error = plan_.rescaling + plan_.rescaling_quantum / rescaling.factor;
    rescaling.quantum = plan_.rescaling_quantum > 0 ? plan_.values.chain.quantum : 0;
  }
  const WalkFormat format{.smallest_normal = input_.smallest_normal,
                          .ulp_of_one = 2 * input_.unit_roundoff,
                          .exponents_known = plan_.scale_is_known};
  walk_unit_chain(plan_.values.chain, factors_, keys_.v, block.first, format, rescaling, chain_);
}

/// What summing P·V errs, times the sum of the weights.
double HeadBound::value_error(const Sums& sums, double rescalings, std::size_t keys) const {
  const SumErrors& sum = plan_.values;
  const double scale = plan_.divided_first ? 1 / part_weight_ : 1;
  double error = (sum.relative + sum.products) * sums.absolute;
  error += sum.term_quantum * static_cast<double>(keys) * token_sum_ / scale;
  if (!sum.is_chain) return error + rescalings * plan_.rescaling * sums.absolute;
  for (std::size_t d = 0; d < head_.token.size(); ++d) {
    error += std::abs(head_.token[d]) * chain_.bound[d] / scale;
  }
  return error;
}

HeadBound::Part HeadBound::part(const attention::KeyRange& keys) {
  const std::vector<Block> blocks = blocks_of(keys);
  Part result;
  const double lowest =
      std::min_element(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
        return a.largest < b.largest;
      })->largest;
  part_largest_ = blocks.back().largest;
  if (!(head_.largest_score - lowest < farthest)) {
    result.error = no_bound;
    return result;
  }
  part_scale_ = exponential(head_.largest_score - part_largest_);
  Sums sums;
  for (auto j = static_cast<std::size_t>(keys.begin); j < static_cast<std::size_t>(keys.end); ++j) {
    sums.weight += head_.weight[j] * part_scale_;
    sums.along += head_.weight[j] * part_scale_ * head_.along[j];
  }
  part_weight_ = sums.weight;
  part_difference_ = sums.along / sums.weight;
  chain_ = UnitChain(keys_.v.stride());
  double rescalings = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    add_block(blocks[i], i > 0 ? &blocks[i - 1] : nullptr, sums);
    if (blocks[i].may_rescale) rescalings += 1;
  }
  // Of the weights at least that share is there, and their computed sum.
  const double lost = (sums.moved_weight + sums.dropped) / sums.weight;
  if (!(lost < 0.9) || !(plan_.row_sum < 0.25)) {
    result.error = no_bound;
    return result;
  }
  const double least = (1 - lost) * (1 - plan_.row_sum);
  const double difference = std::abs(part_difference_);
  double error = sums.moved + sums.rounded;
  error += plan_.row_sum * difference * (sums.weight + sums.moved_weight);
  error += value_error(sums, rescalings, static_cast<std::size_t>(keys.size()));
  double outputs = sums.absolute;  // Σ|w_d o_d|, times the sum of the weights
  if (plan_.values.is_chain) {
    const double scale = plan_.divided_first ? 1 / part_weight_ : 1;
    outputs = 0;
    for (std::size_t d = 0; d < head_.token.size(); ++d) {
      outputs += std::abs(head_.token[d]) *
                 (std::abs(chain_.partial[d]) + chain_.slack[d] + chain_.bound[d]) / scale;
    }
  }
  error += plan_.finish * u * outputs;
  if (plan_.stored_parts) {
    error += plan_.stored_parts->unit_roundoff * outputs +
             plan_.stored_parts->half_quantum * token_sum_ * sums.weight;
  }
  result.weight = sums.weight / part_scale_;
  result.difference = part_difference_;
  result.error = outward(error / (sums.weight * least));
  result.weight_error = outward(lost + sums.rounded_weight / sums.weight + plan_.row_sum);
  result.magnitude = outward(outputs / (sums.weight * least));
  return result;
}

/// Of outputs o and weights W of the parts: Σ W (error of o), and each weight's own error.
double HeadBound::merged(const std::vector<Part>& parts) const {
  double total = 0;
  for (const Part& part : parts) {
    if (!(part.weight_error < 0.9)) return no_bound;
    total += part.weight;
  }
  const double log_keys = 0.7 * static_cast<double>(std::bit_width(head_.score.size()));
  const double magnitude = magnitude_ + log_keys;
  const double roundings = 1.02 * u * (plan_.merge_per_magnitude * magnitude + plan_.merge_fixed);
  double error = 0;
  double weights = 0;  // of all of them together
  for (const Part& part : parts) {
    const double share = part.weight / total;
    // The weight's logarithm errs by at most that.
    const double moved =
        expm1_above(outward(part.weight_error / (1 - part.weight_error) + roundings));
    const bool normalized = plan_.merge == PartMerge::normalized;
    const double apart = std::abs(part.difference - (normalized ? head_.difference : 0));
    error += share * ((1 + moved) * part.error + moved * apart);
    error += share * (1 + moved) * plan_.merge_roundings * u * part.magnitude;
    weights += share * moved;
  }
  const double common = plan_.merge == PartMerge::normalized
                            ? plan_.merge_offset + plan_.merge_fixed * 1.02 * u
                            : weights + roundings;
  if (!(weights < 0.25) || !(common < 0.25)) return no_bound;
  error += common * std::abs(head_.difference);
  return outward(error / ((1 - weights) * (1 - common)));
}

double HeadBound::run() {
  find_score_errors();
  if (!(head_.largest_score - 2 * largest_error_ > plan_.lowest_maximum)) return no_bound;
  std::vector<Part> parts;
  parts.reserve(plan_.parts.size());
  for (const attention::KeyRange& keys : plan_.parts) parts.push_back(part(keys));
  return plan_.merge == PartMerge::none ? parts.front().error : merged(parts);
}

}  // namespace kvsim::fuzz
