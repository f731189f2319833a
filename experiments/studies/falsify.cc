// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/falsify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/studies/falsify_grid.h"
#include "experiments/studies/falsify_model.h"
#include "experiments/studies/falsify_summaries.h"
#include "experiments/studies/falsify_sweep.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

Result<Json> sweep(const StudySetup& /*setup*/, const StudyUnit& unit) {
  return sweep_errors(unit.seed);
}
Result<Json> grid(const StudySetup& /*setup*/, const StudyUnit& unit) {
  return grid_errors(unit.seed);
}

/// A kind of piece of work.
struct PartRow {
  std::string_view name;
  Result<Json> (*measure)(const StudySetup& setup, const StudyUnit& unit);
  std::int64_t arms = 0;  ///< texts of the model that one piece computes; 0: seeded numbers alone
  bool has_steps = true;  ///< behind the prompt
  std::int64_t least_prompts = 1;
};

constexpr std::array parts{
    PartRow{"lengths", sweep},
    PartRow{"grid", grid},
    PartRow{"layers", measure_layers, 2},
    PartRow{"cache", measure_cache, 2, false},
    PartRow{"formats", measure_formats, 12},
    PartRow{"unrelated", measure_unrelated, 2, true, 2},
};

/// Texts of a strategy: "texts top-k".
constexpr std::string_view texts_prefix = "texts ";

/// Draws of seeded numbers: more where more prompts are asked for.
std::int64_t draws_of(const StudySetup& setup) {
  return std::clamp<std::int64_t>(2 * std::ssize(setup.prompts), 4, 32);
}

std::int64_t rows_of(const StudySetup& setup, std::int64_t prompt, std::int64_t steps) {
  return std::ssize(setup.prompts[static_cast<std::size_t>(prompt)].prompt.ids) + steps;
}

class Falsify : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> Falsify::units(const StudySetup& setup) const {
  std::vector<StudyUnit> list;
  const auto prompts = std::ssize(setup.prompts);
  for (const PartRow& part : parts) {
    if (prompts < part.least_prompts) continue;
    const std::int64_t pieces = part.arms == 0 ? draws_of(setup) : prompts;
    for (std::int64_t i = 0; i < pieces; ++i) {
      if (part.arms == 0) {
        list.push_back({std::string(part.name), 0, static_cast<std::uint64_t>(i), 0});
        continue;
      }
      const std::int64_t steps = part.has_steps ? falsify_steps(setup) : 0;
      list.push_back({std::string(part.name), i, 0, part.arms * rows_of(setup, i, steps)});
    }
  }
  const std::vector<std::uint64_t> once{0};
  for (const Strategy& strategy : setup.strategies) {
    for (const std::uint64_t seed : strategy.is_random() ? setup.seeds : once) {
      for (std::int64_t i = 0; i < prompts; ++i) {
        list.push_back({std::string(texts_prefix) + strategy.name, i, seed,
                        2 * rows_of(setup, i, setup.new_tokens)});
      }
    }
  }
  return list;
}

Result<Json> Falsify::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const auto* const part = std::ranges::find(parts, unit.part, &PartRow::name);
  if (part != parts.end()) return part->measure(setup, unit);
  const auto strategy =
      std::ranges::find(setup.strategies, unit.part.substr(texts_prefix.size()), &Strategy::name);
  return measure_text(setup, unit, *strategy);
}

/// The values of all pieces of one kind.
std::vector<Json> values_of(const StudyRecords& records, std::string_view part) {
  std::vector<Json> values;
  for (const StudyRecords::Unit& unit : records.units) {
    if (unit.unit.part == part) values.push_back(unit.values);
  }
  return values;
}

std::string headline_of(const Json& result) {
  const Json& attention = result.at("lengths").at("attention");
  const auto exponent = [&](const char* column) {
    return attention.at(column).at("exponent").at("value").get<double>();
  };
  return fmt::format(
      "From 16 to 2048 keys the error of storing in binary16 grows as n^{:.2f}, that of sums in "
      "binary16 as n^{:.2f}, and KL as error^{:.2f}.",
      exponent("p_output"), exponent("half"),
      result.at("grid").at("kl_over_error").at("value").get<double>());
}

Result<StudySummary> Falsify::summarize(const StudyRecords& records) const {
  StudySummary summary;
  const std::vector<Json> draws = values_of(records, "lengths");
  if (const auto done = summarize_sweep(draws, summary); !done) return done.error();
  const std::vector<Json> cells = values_of(records, "grid");
  if (const auto done = summarize_grid(cells, summary); !done) return done.error();
  summarize_layers(values_of(records, "layers"), summary);
  summarize_cache(values_of(records, "cache"), summary);
  summarize_formats(values_of(records, "formats"), summary);
  std::vector<MeasuredText> texts;
  for (const StudyRecords::Unit& unit : records.units) {
    const std::string& part = unit.unit.part;
    if (!part.starts_with(texts_prefix)) continue;
    texts.push_back({part.substr(texts_prefix.size()), unit.values});
  }
  summarize_texts(texts, values_of(records, "unrelated"), summary);
  summary.headline = headline_of(summary.result);
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_falsify() { return std::make_unique<Falsify>(); }

}  // namespace kvsim::experiments
