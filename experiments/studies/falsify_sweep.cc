// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify_sweep.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/distributions.h"
#include "experiments/statistics/line.h"
#include "experiments/studies/falsify_draw.h"
#include "experiments/tables.h"
#include "sim/attention/run.h"
#include "sim/attention_row.h"
#include "sim/bounded_sum.h"
#include "sim/inputs.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t head_dim = 128;
constexpr std::array<std::int64_t, 8> lengths{16, 32, 64, 128, 256, 512, 1024, 2048};
constexpr std::string_view unit_kernel = "h100-fa3";

constexpr std::array attention_rows{
    SweepColumn{"output", "output", "the output is stored in binary16, nothing else is rounded"},
    SweepColumn{"p", "p", "probabilities are stored in binary16"},
    SweepColumn{"p_output", "p, out", "both"},
    SweepColumn{"scores_p_output", "all three", "and scores"},
    SweepColumn{"single", "f32 sums", "sums in binary32, in order; p and output stored"},
    SweepColumn{"unit", "FA3", "FlashAttention-3 on an H100's matrix unit"},
    SweepColumn{"half", "f16 sums", "p stored, P·V summed in binary16, in order"},
    SweepColumn{"half_reverse", "fwd-rev", "the same sums forwards against backwards"},
    SweepColumn{"half_throughout", "all f16", "scores, softmax and P·V computed in binary16"},
};

constexpr std::array sum_rows{
    SweepColumn{"sum_stored", "f32 sum, stored",
                "summed in binary32, in order, stored in binary16"},
    SweepColumn{"sum_half", "f16, in order", "summed in binary16, one after the other"},
    SweepColumn{"sum_half_pairwise", "f16, pairwise", "summed in binary16, in pairs"},
};

double half(double x) { return round_to(softfloat::binary16, DoubleDouble(x)); }

std::vector<double> stored(std::vector<double> values) {
  for (double& each : values) each = half(each);
  return values;
}

AttentionArithmetic arithmetic_of(const softfloat::Format& accumulator, bool stores) {
  return {.storage = softfloat::binary16,
          .accumulator = accumulator,
          .product = Product::rounded,
          .round_scores = false,
          .round_p = stores,
          .round_out = stores};
}

AttentionRow row_of(const AttentionDraw& draw) {
  return {.keys = draw.keys,
          .head_dim = draw.head_dim,
          .q = draw.q,
          .k_transposed = draw.k_transposed,
          .key_stride = draw.keys,
          .v = draw.v};
}

Result<std::vector<double>> on_unit(const AttentionDraw& draw) {
  const std::vector<float> q(draw.q.begin(), draw.q.end());
  const std::vector<float> k(draw.k.begin(), draw.k.end());
  const std::vector<float> v(draw.v.begin(), draw.v.end());
  AttentionProblem problem;
  problem.shape = {.kv_len = draw.keys, .head_dim = draw.head_dim};
  problem.storage = softfloat::binary16;
  problem.q = q.data();
  problem.k = k.data();
  problem.v = v.data();
  const auto result = run_attention(*find_attention_kernel(unit_kernel), problem);
  if (!result) return result.error();
  return std::vector<double>(result->out.begin(), result->out.end());
}

/// Numbers between 0 and 1 in binary16, [terms][head_dim]. Terms of equal size as large as half a
/// unit in the last place of their sum would be lost or doubled all alike: these are not.
std::vector<double> positive_terms(std::uint64_t draw, std::int64_t terms) {
  constexpr std::uint64_t seed = 0x73756d73;  // "sums"
  std::vector<double> values(static_cast<std::size_t>(terms * head_dim));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = half(uniform(seed, draw, i));
  return values;
}

/// Mean relative error of the sums of the first `count` terms.
double sum_error(std::span<const double> terms, std::int64_t count,
                 const softfloat::Format& accumulator, const Order& order) {
  const auto used = terms.first(static_cast<std::size_t>(count * head_dim));
  const SumProblem problem{.order = order,
                           .input = softfloat::binary16,
                           .accumulator = accumulator,
                           .terms = count,
                           .factor = {},
                           .columns = used,
                           .column_count = head_dim,
                           .stride = head_dim};
  const std::vector<double> sums = bounded_sum(problem).sums.value;
  double error = 0;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    double exact = 0;  // multiples of 2^−24 below 2^12: no rounding
    for (std::size_t i = j; i < used.size(); i += sums.size()) exact += used[i];
    error += std::abs(half(sums[j]) - exact) / exact;
  }
  return error / static_cast<double>(head_dim);
}

struct Orders {
  Order forwards;
  Order backwards;
  Order pairwise;
};

Result<bool> add_length(const AttentionDraw& draw, const Orders& orders, Json& errors) {
  const std::vector<double> scores = plain_scores(draw);
  const std::vector<double> p = plain_softmax(scores);
  const std::vector<double> exact = plain_values(draw, p);
  const std::vector<double> stored_p = stored(p);
  const std::vector<double> stored_s = stored(plain_softmax(stored(scores)));
  const std::vector<double> with_p = plain_values(draw, stored_p);
  const auto add = [&](std::string_view key, std::span<const double> value) {
    errors[std::string(key)].push_back(json_of(relative_error(value, exact)));
  };
  add("output", stored(exact));
  add("p", with_p);
  add("p_output", stored(with_p));
  add("scores_p_output", stored(plain_values(draw, stored_s)));
  const AttentionRow row = row_of(draw);
  const auto attention = [&](const softfloat::Format& accumulator, bool stores) {
    const AttentionOrders same{orders.forwards, orders.forwards, orders.forwards};
    return attention_of_row(arithmetic_of(accumulator, stores), same, row).value;
  };
  add("single", attention(softfloat::binary32, true));
  const Result<std::vector<double>> unit = on_unit(draw);
  if (!unit) return unit.error();
  add("unit", *unit);
  const AttentionArithmetic sums = arithmetic_of(softfloat::binary16, false);
  const std::vector<double> forwards = values_of_row(sums, orders.forwards, row, stored_p).value;
  const std::vector<double> backwards = values_of_row(sums, orders.backwards, row, stored_p).value;
  add("half", forwards);
  errors["half_reverse"].push_back(json_of(relative_error(backwards, forwards)));
  add("half_throughout", attention(softfloat::binary16, true));
  return true;
}

/// The slope of log(error) over log(length) of one draw.
Result<double> exponent_of(const Json& errors) {
  std::vector<double> x;
  std::vector<double> y;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    x.push_back(statistics::logarithm(static_cast<double>(lengths.at(i))));
    y.push_back(statistics::logarithm(errors.at(i).get<double>()));
  }
  const auto line = statistics::fit_line(x, y);
  if (!line) return line.error();
  return line->slope.value;
}

/// What the draws say of one column.
struct ColumnFigures {
  std::vector<double> means;  ///< over the draws, by length
  statistics::Estimate exponent;
};

Result<ColumnFigures> figures_of(std::span<const Json> draws, std::string_view key) {
  ColumnFigures figures;
  figures.means.resize(lengths.size());
  std::vector<std::vector<double>> exponents;
  exponents.reserve(draws.size());
  for (const Json& draw : draws) {
    const Json& errors = draw.at(std::string(key));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      figures.means[i] += errors.at(i).get<double>() / static_cast<double>(draws.size());
    }
    const Result<double> exponent = exponent_of(errors);
    if (!exponent) return exponent.error();
    exponents.push_back({*exponent});
  }
  const auto interval = statistics::bootstrap_mean(exponents, {.resamples = 2000});
  if (!interval) return interval.error();
  figures.exponent = interval->percentile;
  return figures;
}

Result<SummaryTable> table_of(std::span<const Json> draws, std::span<const SweepColumn> columns,
                              Json& result) {
  SummaryTable table;
  table.columns.push_back({"length", "n", ""});
  table.rows.resize(lengths.size() + 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) table.rows[i] = {cell(lengths.at(i))};
  table.rows.back() = {{"exponent", "exponent"}};
  for (const SweepColumn& column : columns) {
    const auto figures = figures_of(draws, column.key);
    if (!figures) return figures.error();
    table.columns.push_back({std::string(column.key), std::string(column.heading), ""});
    Json& values = result[std::string(column.key)];
    values["exponent"] = json_of(figures->exponent);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const double mean = figures->means[i];
      table.rows[i].push_back({fmt::format("{:.2e}", mean), mean});
      values[fmt::format("{}", lengths.at(i))] = mean;
    }
    const statistics::Estimate& exponent = figures->exponent;
    table.rows.back().push_back({fmt::format("{:.2f}", exponent.value), json_of(exponent)});
    table.notes.push_back(fmt::format("{}: {} (exponent {:.2f}, {:.2f} to {:.2f})", column.heading,
                                      column.meaning, exponent.value, exponent.low, exponent.high));
  }
  return table;
}

}  // namespace

std::span<const SweepColumn> attention_columns() { return attention_rows; }
std::span<const SweepColumn> sum_columns_of_sweep() { return sum_rows; }
std::span<const std::int64_t> sweep_lengths() { return lengths; }

Result<Json> sweep_errors(std::uint64_t draw) {
  const Result<Order> forwards = parse_order("sequential");
  const Result<Order> backwards = parse_order("reverse");
  const Result<Order> pairwise = parse_order("pairwise");
  if (!forwards || !backwards || !pairwise) return forwards.error();
  const Orders orders{*forwards, *backwards, *pairwise};
  const AttentionDraw whole = rounded_draw(attention_draw(draw, lengths.back(), head_dim),
                                           [](double x) { return half(x); });
  const std::vector<double> terms = positive_terms(draw, lengths.back());
  Json errors;
  for (const std::int64_t keys : lengths) {
    if (const auto done = add_length(whole.first(keys), orders, errors); !done) return done.error();
    const auto sums = [&](const softfloat::Format& accumulator, const Order& order) {
      return sum_error(terms, keys, accumulator, order);
    };
    errors["sum_stored"].push_back(sums(softfloat::binary32, orders.forwards));
    errors["sum_half"].push_back(sums(softfloat::binary16, orders.forwards));
    errors["sum_half_pairwise"].push_back(sums(softfloat::binary16, orders.pairwise));
  }
  return errors;
}

Result<bool> summarize_sweep(std::span<const Json> draws, StudySummary& summary) {
  Json& result = summary.result["lengths"];
  result["draws"] = draws.size();
  Result<SummaryTable> attention = table_of(draws, attention_rows, result["attention"]);
  if (!attention) return attention.error();
  attention->title = fmt::format(
      "error of attention over n keys, relative L2 against binary64 (binary16, {} draws)",
      draws.size());
  Result<SummaryTable> sums = table_of(draws, sum_rows, result["sums"]);
  if (!sums) return sums.error();
  sums->title = "mean relative error of a sum of n numbers between 0 and 1";
  summary.tables.push_back(std::move(*attention));
  summary.tables.push_back(std::move(*sums));
  return true;
}

}  // namespace kvsim::experiments
