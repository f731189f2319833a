// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/orders.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <utility>

#include "sim/attention_row.h"
#include "sim/error_bounds.h"
#include "sim/error_summary.h"
#include "sim/parallel.h"
#include "sim/predict/order_checks.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

constexpr std::array stages{Stage::scores, Stage::row_sum, Stage::softmax, Stage::values,
                            Stage::attention};

std::size_t place_of(Stage stage) { return static_cast<std::size_t>(stage); }

/// The format in which a stage delivers its elements.
const softfloat::Format& stage_format(const AttentionArithmetic& arithmetic, Stage stage) {
  switch (stage) {
    case Stage::scores:
      return scores_format(arithmetic);
    case Stage::row_sum:
      return arithmetic.accumulator;
    case Stage::softmax:
      return p_format(arithmetic);
    case Stage::values:
    case Stage::attention:
      break;
  }
  return out_format(arithmetic);
}

Order parsed(std::string_view text) { return parse_order(text).value(); }

AttentionOrders everywhere(const Order& order) { return {order, order, order}; }

/// A control: attention with other arithmetic or orders.
struct Control {
  std::string name;
  std::string meaning;
  AttentionArithmetic arithmetic;
  AttentionOrders orders;
  bool exact_until_output = false;  ///< no sums at all: the exact result, rounded once
};

std::vector<Control> make_controls(const AttentionArithmetic& arithmetic) {
  AttentionArithmetic float32 = arithmetic;
  float32.accumulator = softfloat::binary32;
  AttentionArithmetic float64 = arithmetic;
  float64.accumulator = softfloat::binary64;
  return {
      {"float32 accumulator", "the same storage, sequential sums in float32", float32,
       everywhere(parsed("sequential")), false},
      {"exact accumulator", "the same storage, exact sums, all else in float64", float64,
       everywhere(parsed("exact")), false},
      {"rounded once", "the exact result in the output format", arithmetic,
       everywhere(parsed("exact")), true},
  };
}

/// What one query row contributes to the report.
struct RowResult {
  std::vector<ErrorSums> stages;        // [stage][variant]
  std::vector<ErrorSums> controls;      // [control]
  std::vector<std::int64_t> differing;  // [stage][variant][variant]
};

/// Everything that the rows share.
class Prediction {
 public:
  Prediction(const OrderStudyOptions& options, const AttentionValues& inputs)
      : options_(options), inputs_(inputs), controls_(make_controls(options.arithmetic)) {
    const AttentionShape& shape = options.shape;
    transposed_.resize(inputs.k.size());
    for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
      const std::int64_t base = head * shape.kv_len * shape.head_dim;
      for (std::int64_t j = 0; j < shape.kv_len; ++j) {
        for (std::int64_t d = 0; d < shape.head_dim; ++d) {
          transposed_[index(base + d * shape.kv_len + j)] =
              inputs.k[index(base + j * shape.head_dim + d)];
        }
      }
    }
  }

  [[nodiscard]] const std::vector<Control>& controls() const { return controls_; }

  /// Row `i` of query_heads × query_len.
  [[nodiscard]] RowResult row(std::int64_t i) const {
    const AttentionShape& shape = options_.shape;
    const std::int64_t query_head = i / shape.query_len;
    const std::int64_t base = query_head / shape.group() * shape.kv_len * shape.head_dim;
    const std::size_t size = index(shape.kv_len * shape.head_dim);
    return compute(
        {.keys = shape.visible_keys(i % shape.query_len),
         .head_dim = shape.head_dim,
         .q = std::span(inputs_.q).subspan(index(i * shape.head_dim), index(shape.head_dim)),
         .k_transposed = std::span(transposed_).subspan(index(base), size),
         .key_stride = shape.kv_len,
         .v = std::span(inputs_.v).subspan(index(base), size),
         .simd = options_.simd});
  }

 private:
  [[nodiscard]] RowResult compute(const AttentionRow& row) const {
    const AttentionArithmetic& arithmetic = options_.arithmetic;
    const std::size_t variants = options_.variants.size();

    // The exact chain, and the exact result of each stage on the rounded result of the one before.
    const std::vector<DoubleDouble> scores = exact_scores(row);
    const ExactSoftmax softmax = exact_softmax(scores);
    const std::vector<DoubleDouble> output = exact_values(row, softmax.p);
    const std::vector<double> scores_in = rounded(scores_format(arithmetic), scores);
    const ExactSoftmax softmax_of_input = exact_softmax(widened(scores_in));
    const std::vector<double> p_in = rounded(p_format(arithmetic), softmax.p);
    const std::vector<DoubleDouble> output_of_input = exact_values(row, widened(p_in));

    RowResult result;
    result.stages.resize(stages.size() * variants);
    std::array<std::vector<std::vector<double>>, stages.size()> computed;  // [stage][variant]
    const auto record = [&](Stage stage, std::size_t variant, std::span<const DoubleDouble> exact,
                            BoundedValues values) {
      result.stages[place_of(stage) * variants + variant].add(stage_format(arithmetic, stage),
                                                              values, exact);
      computed[place_of(stage)].push_back(std::move(values.value));
    };
    for (std::size_t i = 0; i < variants; ++i) {
      const AttentionOrders& orders = options_.variants[i].orders;
      record(Stage::scores, i, scores, scores_of_row(arithmetic, orders.scores, row));
      SoftmaxOfRow alone = softmax_of_row(arithmetic, orders.row_sum, scores_in, row.simd);
      record(Stage::row_sum, i, std::span(&softmax_of_input.row_sum, 1), std::move(alone.row_sum));
      record(Stage::softmax, i, softmax_of_input.p, std::move(alone.p));
      record(Stage::values, i, output_of_input,
             values_of_row(arithmetic, orders.values, row, p_in));
      record(Stage::attention, i, output, attention_of_row(arithmetic, orders, row));
    }
    for (const auto& stage : computed) {
      for (std::size_t i = 0; i < variants; ++i) {
        for (std::size_t j = 0; j < variants; ++j) {
          result.differing.push_back(count_different(stage[i], stage[j]));
        }
      }
    }
    for (const Control& control : controls_) {
      BoundedValues values;
      if (control.exact_until_output) {
        const RoundingUnits units(out_format(control.arithmetic));
        values.value = rounded(out_format(control.arithmetic), output);
        for (const double value : values.value) {
          values.running.push_back(rounding_error(units, value));
        }
      } else {
        values = attention_of_row(control.arithmetic, control.orders, row);
      }
      result.controls.emplace_back();
      result.controls.back().add(out_format(control.arithmetic), values, output);
    }
    return result;
  }

  static std::vector<double> rounded(const softfloat::Format& format,
                                     std::span<const DoubleDouble> exact) {
    std::vector<double> result;
    result.reserve(exact.size());
    for (const DoubleDouble value : exact) result.push_back(round_to(format, value));
    return result;
  }

  static std::vector<DoubleDouble> widened(std::span<const double> values) {
    return {values.begin(), values.end()};
  }

  const OrderStudyOptions& options_;
  const AttentionValues& inputs_;
  std::vector<Control> controls_;
  std::vector<double> transposed_;  // K as [kv_heads, head_dim, kv_len]
};

}  // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::scores:
      return "scores";
    case Stage::row_sum:
      return "row sum";
    case Stage::softmax:
      return "softmax";
    case Stage::values:
      return "P·V";
    case Stage::attention:
      break;
  }
  return "attention";
}

std::vector<OrderedVariant> default_variants() {
  std::vector<OrderedVariant> variants;
  for (const char* text : {"sequential", "reverse", "pairwise", "halving", "lanes(16,2)",
                           "blocks(64)", "split(8)", "exact"}) {
    variants.push_back({text, everywhere(parsed(text))});
  }
  return variants;
}

Result<OrderStudy> study_orders(const OrderStudyOptions& options, const AttentionValues& inputs) {
  if (auto fits = check_order_study(options); !fits) return fits.error();

  const Prediction prediction(options, inputs);
  const std::int64_t rows = options.shape.query_heads * options.shape.query_len;
  const std::size_t variants = options.variants.size();
  RowResult total;
  total.stages.resize(stages.size() * variants);
  total.controls.resize(prediction.controls().size());
  total.differing.assign(stages.size() * variants * variants, 0);

  // Rows are computed in batches by all threads and added up in their own order.
  const std::int64_t batch = std::max<std::int64_t>(options.threads, 1) * 4;
  std::mutex progress_lock;
  std::int64_t finished = 0;
  for (std::int64_t first = 0; first < rows; first += batch) {
    std::vector<RowResult> results(index(std::min(batch, rows - first)));
    parallel_for(static_cast<std::int64_t>(results.size()), options.threads, [&](std::int64_t i) {
      results[index(i)] = prediction.row(first + i);
      if (!options.progress) return;
      const std::lock_guard lock(progress_lock);
      options.progress(static_cast<double>(++finished) / static_cast<double>(rows));
    });
    for (const RowResult& row : results) {
      for (std::size_t i = 0; i < total.stages.size(); ++i) total.stages[i].add(row.stages[i]);
      for (std::size_t i = 0; i < total.controls.size(); ++i)
        total.controls[i].add(row.controls[i]);
      for (std::size_t i = 0; i < total.differing.size(); ++i)
        total.differing[i] += row.differing[i];
    }
  }

  OrderStudy report;
  report.options = options;
  report.options.progress = nullptr;
  for (const Stage stage : stages) {
    DifferenceCount count{stage, 0, {}};
    for (std::size_t i = 0; i < variants; ++i) {
      const ErrorSummary error = total.stages[place_of(stage) * variants + i].summary();
      count.elements = error.elements;
      report.bounds_hold =
          report.bounds_hold && total.stages[place_of(stage) * variants + i].bounds_hold();
      report.stages.push_back(
          {stage, options.variants[i].name, stage_format(options.arithmetic, stage), error});
      const auto begin = total.differing.begin() +
                         static_cast<std::ptrdiff_t>((place_of(stage) * variants + i) * variants);
      count.differing.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(variants));
    }
    report.differences.push_back(std::move(count));
  }
  for (std::size_t i = 0; i < total.controls.size(); ++i) {
    const Control& control = prediction.controls()[i];
    report.bounds_hold = report.bounds_hold && total.controls[i].bounds_hold();
    report.controls.push_back({control.name, control.meaning, out_format(control.arithmetic),
                               total.controls[i].summary()});
  }
  return report;
}

}  // namespace kvsim
