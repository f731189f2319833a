// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/statistics/distributions.h"
#include "experiments/statistics/line.h"
#include "experiments/statistics/samples.h"
#include "experiments/studies/falsify_grid.h"
#include "experiments/tables.h"
#include "softfloat/formats.h"

namespace kvsim::experiments {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::binary64;
using softfloat::Format;
using softfloat::tf32;

/// What people see of the grid.
struct ShownCell {
  std::string_view name;
  GridCell cell;
};

/// The finest cell: every other one is compared with it.
constexpr GridCell finest{binary32, binary32, binary64, binary32};

constexpr std::array single_factors{
    ShownCell{"storage bfloat16", {bfloat16, binary32, binary64, binary32}},
    ShownCell{"storage binary16", {binary16, binary32, binary64, binary32}},
    ShownCell{"operands bfloat16", {binary32, bfloat16, binary64, binary32}},
    ShownCell{"operands binary16", {binary32, binary16, binary64, binary32}},
    ShownCell{"operands tf32", {binary32, tf32, binary64, binary32}},
    ShownCell{"sums binary16", {binary32, binary32, binary16, binary32}},
    ShownCell{"sums binary32", {binary32, binary32, binary32, binary32}},
    ShownCell{"output bfloat16", {binary32, binary32, binary64, bfloat16}},
    ShownCell{"output binary16", {binary32, binary32, binary64, binary16}},
};

constexpr std::array combinations{
    ShownCell{"bfloat16, sums binary32", {bfloat16, bfloat16, binary32, bfloat16}},
    ShownCell{"binary16, sums binary32", {binary16, binary16, binary32, binary16}},
    ShownCell{"binary16, sums binary16", {binary16, binary16, binary16, binary16}},
    ShownCell{"float32 with TF32", {binary32, tf32, binary32, binary32}},
    ShownCell{"float32", {binary32, binary32, binary32, binary32}},
};

/// One format wherever a number is stored or multiplied, sums in binary64: what u alone does.
constexpr std::array uniform_formats{bfloat16, binary16, binary32};

double unit_roundoff(const Format& format) { return std::ldexp(1.0, -format.precision); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return statistics::sorted_quantile(values, 0.5);
}

using Medians = std::map<std::string, GridErrors, std::less<>>;

Medians medians_of(std::span<const Json> draws) {
  Medians medians;
  for (const GridCell& cell : grid_cells()) {
    const std::string key = to_text(cell);
    std::array<std::vector<double>, 3> columns;
    for (const Json& draw : draws) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        columns.at(i).push_back(draw.at(key).at(i).get<double>());
      }
    }
    medians[key] = {median(columns[0]), median(columns[1]), median(columns[2])};
  }
  return medians;
}

const GridErrors& of(const Medians& medians, const GridCell& cell) {
  return medians.find(to_text(cell))->second;
}

/// Log y over log x, with the interval of the slope.
Result<statistics::Estimate> exponent(std::span<const std::pair<double, double>> points) {
  std::vector<double> x;
  std::vector<double> y;
  for (const auto& [first, second] : points) {
    x.push_back(statistics::logarithm(first));
    y.push_back(statistics::logarithm(second));
  }
  const auto line = statistics::fit_line(x, y);
  if (!line) return line.error();
  return line->slope;
}

/// The error of a cell ÷ the root of the summed squares of what each of its factors does alone.
double beside_sum_of_squares(const Medians& medians, const GridCell& cell) {
  double squares = 0;
  for (const GridCell& alone :
       {GridCell{cell.storage, finest.operand, finest.accumulator, finest.output},
        GridCell{finest.storage, cell.operand, finest.accumulator, finest.output},
        GridCell{finest.storage, finest.operand, cell.accumulator, finest.output},
        GridCell{finest.storage, finest.operand, finest.accumulator, cell.output}}) {
    squares += of(medians, alone).logits * of(medians, alone).logits;
  }
  return of(medians, cell).logits / std::sqrt(squares);
}

Result<bool> add_laws(const Medians& medians, Json& result, SummaryTable& table) {
  std::vector<std::pair<double, double>> error_of_u;
  std::vector<std::pair<double, double>> kl_of_u;
  std::vector<std::pair<double, double>> kl_of_error;
  std::vector<double> ratios;
  for (const Format& format : uniform_formats) {
    const GridErrors& errors = of(medians, {format, format, binary64, format});
    error_of_u.emplace_back(unit_roundoff(format), errors.logits);
    kl_of_u.emplace_back(unit_roundoff(format), errors.kl);
  }
  for (const GridCell& cell : grid_cells()) {
    const GridErrors& errors = of(medians, cell);
    kl_of_error.emplace_back(errors.logits, errors.kl);
    ratios.push_back(beside_sum_of_squares(medians, cell));
  }
  const auto error_law = exponent(error_of_u);
  if (!error_law) return error_law.error();
  const auto kl_law = exponent(kl_of_u);
  if (!kl_law) return kl_law.error();
  const auto law = exponent(kl_of_error);
  if (!law) return law.error();
  const auto [least, greatest] = std::ranges::minmax_element(ratios);
  result["error_over_u"] = json_of(*error_law);
  result["kl_over_u"] = json_of(*kl_law);
  result["kl_over_error"] = json_of(*law);
  result["beside_sum_of_squares"] = {
      {"median", median(ratios)}, {"least", *least}, {"greatest", *greatest}};
  table.notes.push_back(
      fmt::format("one format for everything but sums: error ~ u^{:.2f}, KL ~ "
                  "u^{:.2f}; all {} cells: KL ~ error^{:.2f}",
                  error_law->value, kl_law->value, ratios.size(), law->value));
  table.notes.push_back(fmt::format(
      "error of a cell against the root of the summed squares of its roundings alone: {:.2f} "
      "times (median; {:.2f} to {:.2f})",
      median(ratios), *least, *greatest));
  return true;
}

}  // namespace

Result<bool> summarize_grid(std::span<const Json> draws, StudySummary& summary) {
  const Medians medians = medians_of(draws);
  Json& result = summary.result["grid"];
  result["draws"] = draws.size();
  Json& cells = result["cells"];
  for (const GridCell& cell : grid_cells()) {
    const GridErrors& errors = of(medians, cell);
    cells[to_text(cell)] = {
        {"attention", errors.attention}, {"logits", errors.logits}, {"kl", errors.kl}};
  }
  SummaryTable table;
  table.title = fmt::format(
      "roundings one by one and together: medians of {} draws against binary64", draws.size());
  table.columns = {{"rounded", "rounded to", "", true},
                   {"attention", "attention", "rel L2"},
                   {"logits", "logits", "rel L2"},
                   {"kl", "KL", "nats"}};
  const auto add = [&](const ShownCell& shown) {
    const GridErrors& errors = of(medians, shown.cell);
    table.rows.push_back(
        {cell(shown.name), cell(errors.attention), cell(errors.logits), cell(errors.kl)});
  };
  for (const ShownCell& shown : single_factors) add(shown);
  for (const ShownCell& shown : combinations) add(shown);
  table.notes = {"the first rows round one thing alone: all else is binary32, and sums binary64",
                 fmt::format("all {} cells of storage, operands, sums and output: "
                             "result.grid.cells with --json",
                             grid_cells().size())};
  if (const auto done = add_laws(medians, result, table); !done) return done;
  summary.tables.push_back(std::move(table));
  return true;
}

}  // namespace kvsim::experiments
