// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "experiments/statistics/bootstrap.h"
#include "experiments/statistics/distributions.h"
#include "experiments/statistics/line.h"
#include "experiments/studies/falsify_summaries.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// Sums of squares by layer, and steps, of one prompt.
struct PromptSquares {
  std::vector<double> squares;
  std::int64_t steps = 0;
  std::int64_t differing = 0;  ///< steps at which the last layer's state differs
};

PromptSquares squares_of(const Json& values) {
  PromptSquares result;
  for (const Json& step : values.at("relative")) {
    result.squares.resize(step.size());
    for (std::size_t layer = 0; layer < step.size(); ++layer) {
      const double relative = step.at(layer).get<double>();
      result.squares[layer] += relative * relative;
    }
    result.differing += !step.empty() && step.back().get<double>() > 0 ? 1 : 0;
    ++result.steps;
  }
  return result;
}

/// Root mean squares by layer of some prompts.
std::vector<double> root_mean_squares(std::span<const PromptSquares> prompts,
                                      std::span<const std::int64_t> chosen) {
  std::vector<double> squares;
  std::int64_t steps = 0;
  for (const std::int64_t index : chosen) {
    const PromptSquares& prompt = prompts[static_cast<std::size_t>(index)];
    squares.resize(std::max(squares.size(), prompt.squares.size()));
    for (std::size_t i = 0; i < prompt.squares.size(); ++i) squares[i] += prompt.squares[i];
    steps += prompt.steps;
  }
  for (double& each : squares)
    each = std::sqrt(each / static_cast<double>(std::max<std::int64_t>(1, steps)));
  return squares;
}

/// The factor from one layer to the next, of the line through the logarithms.
double growth_of(std::span<const double> errors) {
  std::vector<double> x;
  std::vector<double> y;
  for (std::size_t layer = 0; layer < errors.size(); ++layer) {
    if (!(errors[layer] > 0)) continue;
    x.push_back(static_cast<double>(layer));
    y.push_back(statistics::logarithm(errors[layer]));
  }
  const auto line = statistics::fit_line(x, y);
  return line ? statistics::exponential(line->slope.value)
              : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void summarize_layers(std::span<const Json> prompts, StudySummary& summary) {
  std::vector<PromptSquares> squares;
  std::vector<std::int64_t> all;
  std::int64_t steps = 0;
  std::int64_t differing = 0;
  for (const Json& values : prompts) {
    all.push_back(std::ssize(squares));
    squares.push_back(squares_of(values));
    steps += squares.back().steps;
    differing += squares.back().differing;
  }
  const std::vector<double> errors = root_mean_squares(squares, all);
  const auto growth =
      statistics::cluster_bootstrap(std::ssize(squares),
                                    [&](std::span<const std::int64_t> chosen) {
                                      return growth_of(root_mean_squares(squares, chosen));
                                    },
                                    {.resamples = 2000});
  SummaryTable table;
  table.title = fmt::format(
      "hidden state with the cache against without it, same tokens, {} steps of {} prompts", steps,
      prompts.size());
  table.columns = {{"layer", "layer", ""}, {"relative", "rel L2", ""}};
  Json& result = summary.result["layers"];
  result = {{"steps", steps}, {"differing", differing}, {"relative", errors}};
  for (std::size_t layer = 0; layer < errors.size(); ++layer) {
    table.rows.push_back({cell(static_cast<std::int64_t>(layer)), cell(errors[layer])});
  }
  const double factor = growth_of(errors);
  result["growth"] = growth ? json_of(growth->percentile) : json_of(std::optional(factor));
  table.notes.push_back(
      fmt::format("root mean square over steps; {} of {} steps differ at all", differing, steps));
  if (growth) {
    table.notes.push_back(fmt::format("from layer to layer × {:.3f} ({:.3f} to {:.3f}, prompts)",
                                      growth->percentile.value, growth->percentile.low,
                                      growth->percentile.high));
  }
  summary.tables.push_back(std::move(table));
}

void summarize_cache(std::span<const Json> prompts, StudySummary& summary) {
  SummaryTable table;
  table.title = "keys and values of a prompt: all tokens at once against one by one";
  table.columns = {{"layer", "layer", ""},
                   {"key_rows", "keys: other rows", ""},
                   {"key_relative", "rel L2", ""},
                   {"value_rows", "values: other rows", ""},
                   {"value_relative", "rel L2", ""}};
  Json& result = summary.result["cache"];
  std::size_t layers = 0;
  for (const Json& values : prompts) layers = std::max(layers, values.at("key").size());
  for (std::size_t layer = 0; layer < layers; ++layer) {
    std::vector<SummaryCell> row{cell(static_cast<std::int64_t>(layer))};
    for (const char* part : {"key", "value"}) {
      double rows = 0;
      double squares = 0;
      for (const Json& values : prompts) {
        const Json& block = values.at(part).at(layer);
        const double relative = number_of(block.at("relative")).value_or(0);
        rows += block.at("rows").get<double>() / static_cast<double>(prompts.size());
        squares += relative * relative / static_cast<double>(prompts.size());
      }
      const double relative = std::sqrt(squares);
      row.push_back({fmt::format("{:.1f} %", 100 * rows), rows});
      row.push_back(cell(relative));
      result[part].push_back({{"rows", rows}, {"relative", relative}});
    }
    table.rows.push_back(std::move(row));
  }
  table.notes = {
      "layer 0 reads equal embeddings: its values are the projection alone, its keys with RoPE; "
      "later layers inherit",
      "other rows: heads of tokens with other bits"};
  summary.tables.push_back(std::move(table));
}

}  // namespace kvsim::experiments
