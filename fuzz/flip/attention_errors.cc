// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/attention_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "fuzz/flip/attention_steps.h"
#include "sim/exp.h"
#include "sim/exp_constants.h"
#include "sim/log.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

using softfloat::binary32;
using softfloat::Format;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

DoubleDouble sum_of(std::span<const float> numbers) {
  DoubleDouble sum;
  for (const float x : numbers) sum = sum + static_cast<double>(x);
  return sum;
}

class Builder {
 public:
  Builder(const HeadInput& input, std::vector<Rounding>& roundings)
      : input_(input),
        roundings_(roundings),
        taker_(input, roundings),
        sizes_(input.flip_case.shape.attention),
        storage_(input.flip_case.shape.storage),
        sums_(find_storage(input.kernel, storage_)) {}

  HeadErrors run() {
    HeadErrors head;
    head.first = roundings_.size();
    head.eager = input_.kernel.eager != nullptr;
    head.scale = DoubleDouble(1.0) / sqrt(DoubleDouble(static_cast<double>(sizes_.head_dim)));
    score_factor_ = 1.0;
    if (const TileRule* const rule = input_.kernel.tiles; rule != nullptr) {
      head.natural = rule->fold == ExponentFold::natural;
      head.sums_stored = rule->row_sum == RowSumRule::unit;
      base_2_log_sums_ = rule->merge == SplitMerge::serial_states;
      if (head.natural) std::swap(head.scale, score_factor_);
    }
    head.along.reserve(at(sizes_.kv_len));
    for (std::int64_t j = 0; j < sizes_.kv_len; ++j) head.along.push_back(taker_.along(j));
    std::int64_t blocks = 0;
    for (const SplitRecord& split : input_.record.splits) add_split(split, head, blocks);
    if (!head.eager) add_merge(head, blocks);
    const std::vector<float>& before = head.eager ? eager_output_
                                       : input_.record.merged.empty()
                                           ? input_.record.splits[0].output
                                           : input_.record.merged;
    taker_.go_to(fmt::format("query head {}", input_.head), blocks);
    head.of_output = taker_.projected(
        fmt::format("output rounded to {}", softfloat::format_name(storage_)), storage_,
        [&](std::size_t d) { return input_.outputs[d]; },
        [&](std::size_t d) { return DoubleDouble(static_cast<double>(before[d])); });
    head.last = roundings_.size();
    return head;
  }

 private:
  void add_split(const SplitRecord& record, HeadErrors& head, std::int64_t& blocks) {
    SplitErrors& split = head.splits.emplace_back();
    std::vector<float> output(at(sizes_.head_dim));
    std::vector<float> sums;
    for (const BlockRecord& block : record.blocks) {
      taker_.go_to({}, blocks++);
      taker_.go_to_keys(block.place.first_key, block.place.first_key + block.place.keys);
      before_ = output;
      if (head.eager) {
        add_eager_block(block, head, split);
      } else {
        add_block(block, head, split, sums);
      }
      const auto rescaled = block.after(AttentionStep::rescaled_output);
      if (!rescaled.empty()) output.assign(rescaled.begin(), rescaled.end());
      before_ = output;
      split.blocks.back().of_values = product_errors(taker_, {.record = block,
                                                              .before = before_,
                                                              .order = sums_->values,
                                                              .product = sums_->product,
                                                              .operand = operand()});
      const auto after = block.after(AttentionStep::output);
      output.assign(after.begin(), after.end());
      const auto row_sum = block.after(AttentionStep::row_sum);
      sums.assign(row_sum.begin(), row_sum.end());
    }
    if (head.eager) {
      eager_output_ = output;
      return;
    }
    const BlockRecord& first = record.blocks.front();
    const BlockRecord& last = record.blocks.back();
    const std::int64_t begin = std::min(first.place.first_key, last.place.first_key);
    const std::int64_t end =
        std::max(first.place.first_key + first.place.keys, last.place.first_key + last.place.keys);
    taker_.go_to_keys(begin, end);
    const DoubleDouble sum = sum_of(sums);
    split.of_division = taker_.projected(
        "division by the row sum", binary32, [&](std::size_t d) { return record.output[d]; },
        [&](std::size_t d) { return DoubleDouble(static_cast<double>(output[d])) / sum; });
    if (input_.record.splits.size() < 2) return;
    const DoubleDouble log_sum = log_of(record);
    split.of_log_sum = taker_.each(
        "logarithm of the row sum", binary32, 1, [&](std::size_t) { return record.log_sum; },
        [&](std::size_t) {
          const DoubleDouble exact = split.blocks.back().maximum * head.scale + log_reference(sum);
          return base_2_log_sums_ ? exact / exp_constants::ln2 : exact;
        });
    split.of_log_sum.errors = {log_sum -
                               (split.blocks.back().maximum * head.scale + log_reference(sum))};
  }

  /// The split's log sum as computed, to base e.
  [[nodiscard]] DoubleDouble log_of(const SplitRecord& split) const {
    const DoubleDouble log_sum(static_cast<double>(split.log_sum));
    return base_2_log_sums_ ? log_sum * exp_constants::ln2 : log_sum;
  }

  /// q·k of the block, exactly.
  void read_scores(const BlockRecord& record, BlockErrors& block) const {
    block.first_key = record.place.first_key;
    for (std::int64_t j = 0; j < record.place.keys; ++j) {
      block.scores.push_back(taker_.score(block.first_key + j) * score_factor_);
    }
  }

  void add_block(const BlockRecord& record, const HeadErrors& head, SplitErrors& split,
                 std::span<const float> sums) {
    BlockErrors block;
    read_scores(record, block);
    const std::size_t keys = block.scores.size();
    const auto numbers = [&](AttentionStep step) {
      return [step, &record](std::size_t i) { return record.after(step)[i]; };
    };
    const auto exactly = [](float x) { return DoubleDouble(static_cast<double>(x)); };
    block.maximum = exactly(record.after(AttentionStep::maximum)[0]);
    const bool first = split.blocks.empty();
    block.maximum_before = first ? block.maximum : split.blocks.back().maximum;
    const auto scores = record.after(AttentionStep::scores);
    block.of_scores = taker_.each("q·k", binary32, keys, numbers(AttentionStep::scores),
                                  [&](std::size_t j) { return block.scores[j]; });
    block.of_exponents = taker_.each(
        "exponents", binary32, keys, numbers(AttentionStep::exponents), [&](std::size_t j) {
          const DoubleDouble x = (exactly(scores[j]) - block.maximum) * head.scale;
          return head.natural ? x : x / exp_constants::ln2;
        });
    const auto exponents = record.after(AttentionStep::exponents);
    block.of_exponentials =
        taker_.each(head.natural ? "e^x" : "2^x", binary32, keys,
                    numbers(AttentionStep::exponentials), [&](std::size_t j) {
                      const DoubleDouble x = exactly(exponents[j]);
                      return exp_reference(head.natural ? x : x * exp_constants::ln2);
                    });
    const float r = record.after(AttentionStep::rescale)[0];
    if (!first) add_rescaling(record, head, r, block);
    const auto exponentials = record.after(AttentionStep::exponentials);
    const auto probabilities = record.after(AttentionStep::probabilities);
    block.of_row_sum = taker_.each(
        "row sum", binary32, 1,
        [&](std::size_t) { return sum_of(record.after(AttentionStep::row_sum)); },
        [&](std::size_t) {
          return sum_of(sums) * static_cast<double>(r) +
                 sum_of(head.sums_stored ? probabilities.first(keys) : exponentials);
        });
    block.of_probabilities =
        taker_.each(fmt::format("P rounded to {}", softfloat::format_name(operand())), operand(),
                    keys, numbers(AttentionStep::probabilities),
                    [&](std::size_t j) { return exactly(exponentials[j]); });
    split.blocks.push_back(std::move(block));
  }

  void add_rescaling(const BlockRecord& record, const HeadErrors& head, float r,
                     BlockErrors& block) {
    const DoubleDouble factor = exp_reference((block.maximum_before - block.maximum) * head.scale);
    const auto rescaled = record.after(AttentionStep::rescaled_output);
    StepErrors products;
    if (!rescaled.empty()) {
      products = taker_.projected(
          "rescaling", binary32, [&](std::size_t d) { return rescaled[d]; },
          [&](std::size_t d) {
            return DoubleDouble(static_cast<double>(before_[d])) * static_cast<double>(r);
          });
    } else {
      products = taker_.each(
          "rescaling", binary32, 1, [&](std::size_t) { return r; },
          [&](std::size_t) { return factor; });
      products.errors = {0.0};
    }
    block.of_rescaling = {{DoubleDouble(static_cast<double>(r)) - factor, products.errors[0]},
                          products.rounding};
  }

  void add_eager_block(const BlockRecord& record, const HeadErrors& head, SplitErrors& split) {
    BlockErrors block;
    read_scores(record, block);
    const std::size_t keys = block.scores.size();
    const auto number = [&](AttentionStep step, std::size_t i) {
      return DoubleDouble(static_cast<double>(record.after(step)[i]));
    };
    const auto numbers = [&](AttentionStep step) {
      return [step, &record](std::size_t i) { return record.after(step)[i]; };
    };
    const std::string storage(softfloat::format_name(storage_));
    const auto scaled = record.after(AttentionStep::scaled_scores);
    block.maximum = DoubleDouble(static_cast<double>(*std::ranges::max_element(scaled)));
    block.of_scores = taker_.each("q·k", binary32, keys, numbers(AttentionStep::scores),
                                  [&](std::size_t j) { return block.scores[j]; });
    block.of_stored_scores = taker_.each(
        "q·k rounded to " + storage, storage_, keys, numbers(AttentionStep::stored_scores),
        [&](std::size_t j) { return number(AttentionStep::scores, j); });
    block.of_scaled_scores = taker_.each(
        "scores scaled and rounded to " + storage, storage_, keys,
        numbers(AttentionStep::scaled_scores),
        [&](std::size_t j) { return number(AttentionStep::stored_scores, j) * head.scale; });
    block.of_exponents = taker_.each(
        "exponents", binary32, keys, numbers(AttentionStep::exponents),
        [&](std::size_t j) { return number(AttentionStep::scaled_scores, j) - block.maximum; });
    block.of_exponentials = taker_.each(
        "e^x", binary32, keys, numbers(AttentionStep::exponentials),
        [&](std::size_t j) { return exp_reference(number(AttentionStep::exponents, j)); });
    block.of_row_sum =
        taker_.each("row sum", binary32, 1, numbers(AttentionStep::row_sum),
                    [&](std::size_t) { return sum_of(record.after(AttentionStep::exponentials)); });
    const DoubleDouble sum = number(AttentionStep::row_sum, 0);
    block.of_probabilities = taker_.each("P divided and rounded to " + storage, storage_, keys,
                                         numbers(AttentionStep::probabilities), [&](std::size_t j) {
                                           return number(AttentionStep::exponentials, j) / sum;
                                         });
    split.blocks.push_back(std::move(block));
  }

  /// The format of P as it multiplies V.
  [[nodiscard]] const Format& operand() const {
    const TileRule* const rule = input_.kernel.tiles;
    return rule != nullptr && rule->operands_in_half ? softfloat::binary16 : storage_;
  }

  void add_merge(HeadErrors& head, std::int64_t blocks) {
    const HeadRecord& record = input_.record;
    if (record.merged.empty()) return;
    const DoubleDouble common = log_of(record.splits[0]);
    std::vector<DoubleDouble> weights;
    DoubleDouble sum;
    for (const SplitRecord& split : record.splits) {
      weights.push_back(exp_reference(log_of(split) - common));
      sum = sum + weights.back();
    }
    taker_.go_to(fmt::format("query head {}", input_.head), blocks);
    head.of_merge = taker_.projected(
        "merge of splits", binary32, [&](std::size_t d) { return record.merged[d]; },
        [&](std::size_t d) {
          DoubleDouble total;
          for (std::size_t s = 0; s < weights.size(); ++s) {
            total = total + weights[s] * static_cast<double>(record.splits[s].output[d]);
          }
          return total / sum;
        });
  }

  const HeadInput& input_;
  std::vector<Rounding>& roundings_;
  StepTaker taker_;
  const AttentionShape& sizes_;
  const Format& storage_;
  const StorageSums* sums_;
  bool base_2_log_sums_ = false;
  DoubleDouble score_factor_;
  std::vector<float> before_;        ///< the output before a block
  std::vector<float> eager_output_;  ///< not yet rounded to storage
};

}  // namespace

HeadErrors head_errors(const HeadInput& input, std::vector<Rounding>& roundings) {
  return Builder(input, roundings).run();
}

}  // namespace kvsim::fuzz
