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
  /// Texts of the model that one piece computes; null: seeded numbers alone.
  Result<std::vector<TextGroup>> (*texts)(const StudySetup& setup) = nullptr;
  std::int64_t least_prompts = 1;
};

constexpr std::array parts{
    PartRow{"lengths", sweep},
    PartRow{"grid", grid},
    PartRow{"layers", measure_layers, layers_texts},
    PartRow{"cache", measure_cache, cache_texts},
    PartRow{"formats", measure_formats, formats_texts},
    PartRow{"unrelated", measure_unrelated, unrelated_texts, 2},
};

/// Texts of a strategy: "texts top-k".
constexpr std::string_view texts_prefix = "texts ";

/// Draws of seeded numbers: more where more prompts are asked for.
std::int64_t draws_of(const StudySetup& setup) {
  return std::clamp<std::int64_t>(2 * std::ssize(setup.prompts), 4, 32);
}

/// One piece for each prompt. Errors of TextGroup::work().
Result<bool> add_units(const StudySetup& setup, const std::string& part, std::uint64_t seed,
                       std::vector<TextGroup>& texts, std::vector<StudyUnit>& list) {
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    StudyUnit unit{part, i, seed, 0};
    for (TextGroup& group : texts) {
      const Result<std::int64_t> work = group.work(prompt_tokens(setup, i));
      if (!work) return work.error();
      unit.rows += *work;
    }
    list.push_back(std::move(unit));
  }
  return true;
}

class Falsify : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> Falsify::units(const StudySetup& setup) const {
  std::vector<StudyUnit> list;
  for (const PartRow& part : parts) {
    if (std::ssize(setup.prompts) < part.least_prompts) continue;
    if (part.texts == nullptr) {
      for (std::int64_t i = 0; i < draws_of(setup); ++i) {
        list.push_back({std::string(part.name), 0, static_cast<std::uint64_t>(i), 0});
      }
      continue;
    }
    Result<std::vector<TextGroup>> texts = part.texts(setup);
    if (!texts) return texts.error();
    const Result<bool> added = add_units(setup, std::string(part.name), 0, *texts, list);
    if (!added) return added.error();
  }
  Result<TextGroup> both =
      TextGroup::of(*setup.engine, std::array{setup.on, setup.off}, setup.new_tokens);
  if (!both) return both.error();
  std::vector<TextGroup> texts;
  texts.push_back(std::move(*both));
  const std::vector<std::uint64_t> once{0};
  for (const Strategy& strategy : setup.strategies) {
    const std::string part = std::string(texts_prefix) + strategy.name;
    for (const std::uint64_t seed : strategy.is_random() ? setup.seeds : once) {
      const Result<bool> added = add_units(setup, part, seed, texts, list);
      if (!added) return added.error();
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
  std::vector<TextOfStrategy> texts;
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
