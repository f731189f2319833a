// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/attention_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/flip/attention_steps.h"
#include "fuzz/flip/reference.h"
#include "sim/exp.h"
#include "sim/exp_constants.h"
#include "sim/log.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::fuzz {
namespace {

using softfloat::binary32;
using softfloat::Format;

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
    const DoubleDouble scale =
        DoubleDouble(1.0) / sqrt(DoubleDouble(static_cast<double>(sizes_.head_dim)));
    const EagerRule* const eager = input_.kernel.eager;
    head.divides_first = eager != nullptr || input_.kernel.paged != nullptr;
    head.natural = input_.kernel.paged == nullptr;
    head.score_scale = head.scale = score_factor_ = 1.0;
    if (const TileRule* const rule = input_.kernel.tiles; rule != nullptr) {
      head.natural = rule->fold == ExponentFold::natural;
      head.sums_stored = rule->row_sum == RowSumRule::unit;
      base_2_log_sums_ = rule->merge == SplitMerge::serial_states;
      (head.natural ? score_factor_ : head.scale) = scale;
    } else if (eager != nullptr && eager->scale_on_both) {
      score_factor_ = scale;
    } else {
      head.score_scale = scale;
    }
    head.along.reserve(index(sizes_.kv_len));
    for (std::int64_t j = 0; j < sizes_.kv_len; ++j) head.along.push_back(taker_.along(j));
    std::int64_t blocks = 0;
    for (const SplitRecord& split : input_.record.splits) add_split(split, head, blocks);
    add_merge(head, blocks);
    const std::vector<float>& of_split = input_.record.splits[0].output;
    const std::vector<float>& before = !input_.record.merged.empty() ? input_.record.merged
                                       : of_split.empty()            ? last_output_
                                                                     : of_split;
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
    std::vector<float> output(index(sizes_.head_dim));
    std::vector<float> sums;
    for (const BlockRecord& block : record.blocks) {
      taker_.go_to({}, blocks++);
      taker_.go_to_keys(block.place.first_key, block.place.first_key + block.place.keys);
      before_ = output;
      add_block(block, head, split, sums);
      const auto rescaled = block.after(AttentionStep::rescaled_output);
      if (!rescaled.empty()) output.assign(rescaled.begin(), rescaled.end());
      before_ = output;
      split.blocks.back().of_values = product_errors(taker_, {.record = block,
                                                              .before = before_,
                                                              .order = sums_->values,
                                                              .product = sums_->product,
                                                              .operand = operand(),
                                                              .output = accumulator()});
      const auto after = block.after(AttentionStep::output);
      output.assign(after.begin(), after.end());
      const auto row_sum = block.after(AttentionStep::row_sum);
      sums.assign(row_sum.begin(), row_sum.end());
    }
    last_output_ = output;
    if (record.output.empty()) return;
    const BlockRecord& first = record.blocks.front();
    const BlockRecord& last = record.blocks.back();
    const std::int64_t begin = std::min(first.place.first_key, last.place.first_key);
    const std::int64_t end =
        std::max(first.place.first_key + first.place.keys, last.place.first_key + last.place.keys);
    taker_.go_to_keys(begin, end);
    if (head.divides_first) {
      split.of_division = taker_.projected(
          "output of the split rounded to " + storage_name(), storage_,
          [&](std::size_t d) { return record.output[d]; },
          [&](std::size_t d) { return DoubleDouble(static_cast<double>(output[d])); });
      return;
    }
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
    add_scores(record, head, block);
    const auto maximum = record.after(AttentionStep::maximum);
    const auto scaled = record.after(AttentionStep::scaled_scores);
    block.maximum = exactly(maximum.empty() ? *std::ranges::max_element(scaled) : maximum[0]);
    const bool first = split.blocks.empty();
    block.maximum_before = first ? block.maximum : split.blocks.back().maximum;
    add_exponentials(record, head, block);
    if (head.divides_first) {
      add_divided(record, block);
    } else {
      const float r = record.after(AttentionStep::rescale)[0];
      if (!first) add_rescaling(record, head, r, block);
      add_probabilities(record, head, {sum_of(sums), r}, block);
    }
    split.blocks.push_back(std::move(block));
  }

  /// What the numbers after a step are, and what they were before it, as functions of an index.
  static auto numbers(const BlockRecord& record, AttentionStep step) {
    return [step, &record](std::size_t i) { return record.after(step)[i]; };
  }
  static DoubleDouble exactly(float x) { return {static_cast<double>(x)}; }
  [[nodiscard]] std::string storage_name() const {
    return std::string(softfloat::format_name(storage_));
  }

  /// From q and k to scaled scores, as far as the kernel makes these steps.
  void add_scores(const BlockRecord& record, const HeadErrors& head, BlockErrors& block) {
    const std::size_t keys = block.scores.size();
    std::vector<DoubleDouble> given = block.scores;  // what q·k is of what is multiplied
    const auto query = record.after(AttentionStep::scaled_query);
    if (!query.empty()) {
      const auto scaled_keys = record.after(AttentionStep::scaled_keys);
      for (std::size_t j = 0; j < keys; ++j) {
        given[j] = exact_dot(query, scaled_keys.subspan(j * query.size(), query.size()));
      }
      block.of_scaled_operands = taker_.each(
          fmt::format("q and k scaled and rounded to {}, on q·k", storage_name()), binary32, keys,
          [&](std::size_t j) { return given[j]; }, [&](std::size_t j) { return block.scores[j]; });
    }
    block.of_scores = taker_.each("q·k", has_named_kernels() ? storage_ : binary32, keys,
                                  numbers(record, AttentionStep::scores),
                                  [&](std::size_t j) { return given[j]; });
    auto before = record.after(AttentionStep::scores);
    if (const auto stored = record.after(AttentionStep::stored_scores); !stored.empty()) {
      block.of_stored_scores = taker_.each("q·k rounded to " + storage_name(), storage_, keys,
                                           numbers(record, AttentionStep::stored_scores),
                                           [&](std::size_t j) { return exactly(before[j]); });
      before = stored;
    }
    if (record.after(AttentionStep::scaled_scores).empty()) return;
    const bool stores = input_.kernel.eager != nullptr;
    block.of_scaled_scores = taker_.each(
        stores ? "scores scaled and rounded to " + storage_name() : "scores scaled",
        stores ? storage_ : binary32, keys, numbers(record, AttentionStep::scaled_scores),
        [&](std::size_t j) { return exactly(before[j]) * head.score_scale; });
  }

  void add_exponentials(const BlockRecord& record, const HeadErrors& head, BlockErrors& block) {
    const auto exponents = record.after(AttentionStep::exponents);
    if (exponents.empty()) return;  // a softmax kernel makes the probabilities at once
    const std::size_t keys = block.scores.size();
    const auto scaled = record.after(AttentionStep::scaled_scores);
    const auto scores = scaled.empty() ? record.after(AttentionStep::scores) : scaled;
    block.of_exponents = taker_.each(
        "exponents", binary32, keys, numbers(record, AttentionStep::exponents), [&](std::size_t j) {
          const DoubleDouble x = (exactly(scores[j]) - block.maximum) * head.scale;
          return head.natural ? x : x / exp_constants::ln2;
        });
    block.of_exponentials =
        taker_.each(head.natural ? "e^x" : "2^x", binary32, keys,
                    numbers(record, AttentionStep::exponentials), [&](std::size_t j) {
                      const DoubleDouble x = exactly(exponents[j]);
                      return exp_reference(head.natural ? x : x * exp_constants::ln2);
                    });
  }

  /// Where probabilities are divided by the row sum before they multiply V.
  void add_divided(const BlockRecord& record, BlockErrors& block) {
    const std::size_t keys = block.scores.size();
    std::vector<DoubleDouble> given;
    DoubleDouble sum;
    const auto exponentials = record.after(AttentionStep::exponentials);
    for (std::size_t j = 0; j < keys; ++j) {
      const float scaled = record.after(AttentionStep::scaled_scores)[j];
      given.push_back(exponentials.empty() ? exp_reference(exactly(scaled) - block.maximum)
                                           : exactly(exponentials[j]));
      sum = sum + given.back();
    }
    const auto row_sum = record.after(AttentionStep::row_sum);
    if (!row_sum.empty()) {
      block.of_row_sum = taker_.each(
          "row sum", binary32, 1, [&](std::size_t) { return row_sum[0]; },
          [&](std::size_t) { return sum; });
      sum = exactly(row_sum[0]);
    }
    const std::string_view step = exponentials.empty() ? "softmax" : "P divided and";
    block.of_probabilities =
        taker_.each(fmt::format("{} rounded to {}", step, storage_name()), storage_, keys,
                    numbers(record, AttentionStep::probabilities),
                    [&](std::size_t j) { return given[j] / sum; });
  }

  /// The row sum before a block, and the factor that it is multiplied by.
  struct RescaledSum {
    DoubleDouble before;
    float factor = 0;
  };

  void add_probabilities(const BlockRecord& record, const HeadErrors& head, const RescaledSum& sum,
                         BlockErrors& block) {
    const std::size_t keys = block.scores.size();
    const auto exponentials = record.after(AttentionStep::exponentials);
    const auto probabilities = record.after(AttentionStep::probabilities);
    block.of_row_sum = taker_.each(
        "row sum", binary32, 1,
        [&](std::size_t) { return sum_of(record.after(AttentionStep::row_sum)); },
        [&](std::size_t) {
          return sum.before * static_cast<double>(sum.factor) +
                 sum_of(head.sums_stored ? probabilities.first(keys) : exponentials);
        });
    if (input_.kernel.family == AttentionFamily::llama_cpu) return;  // as they are
    block.of_probabilities =
        taker_.each(fmt::format("P rounded to {}", softfloat::format_name(operand())), operand(),
                    keys, numbers(record, AttentionStep::probabilities),
                    [&](std::size_t j) { return exactly(exponentials[j]); });
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

  /// The format of P as it multiplies V.
  [[nodiscard]] const Format& operand() const {
    const TileRule* const rule = input_.kernel.tiles;
    return rule != nullptr && rule->operands_in_half ? softfloat::binary16 : storage_;
  }

  /// Whether kernels of another table make q·k, probabilities and P·V, each in storage.
  [[nodiscard]] bool has_named_kernels() const {
    const EagerRule* const rule = input_.kernel.eager;
    return rule != nullptr && !rule->scores_kernel.empty();
  }
  /// The format of outputs as they add up.
  [[nodiscard]] const Format& accumulator() const {
    const bool in_storage =
        input_.kernel.family == AttentionFamily::llama_cpu || has_named_kernels();
    return in_storage ? storage_ : binary32;
  }

  /// What a split counts for, times a common factor: of its logarithm, or of maximum and row sum.
  [[nodiscard]] DoubleDouble weight_of(const HeadErrors& head, std::size_t split) const {
    const std::vector<SplitRecord>& records = input_.record.splits;
    if (!head.divides_first) {
      return exp_reference(log_of(records[split]) - log_of(records.front()));
    }
    const DoubleDouble gap =
        head.splits[split].blocks.front().maximum - head.splits.front().blocks.front().maximum;
    const BlockRecord& block = records[split].blocks.front();
    return exp_reference(gap) * sum_of(block.after(AttentionStep::row_sum));
  }

  void add_merge(HeadErrors& head, std::int64_t blocks) {
    const HeadRecord& record = input_.record;
    if (record.merged.empty()) return;
    std::vector<DoubleDouble> weights;
    DoubleDouble sum;
    for (std::size_t split = 0; split < record.splits.size(); ++split) {
      weights.push_back(weight_of(head, split));
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
  std::vector<float> before_;       ///< the output before a block
  std::vector<float> last_output_;  ///< of the last split, not divided or rounded
};

}  // namespace

HeadErrors head_errors(const HeadInput& input, std::vector<Rounding>& roundings) {
  return Builder(input, roundings).run();
}

}  // namespace kvsim::fuzz
