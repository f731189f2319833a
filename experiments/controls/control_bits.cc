// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "experiments/controls/compare_bits.h"
#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/protocol/along_text.h"
#include "experiments/tables.h"
#include "run/divergence.h"

/// Controls whose two sides must have the same bits.
namespace kvsim::experiments {
namespace {

/// Steps, and caches, with other bits.
double differing(const Json& bits) {
  return bits.at("other_logits").get<double>() + bits.at("other_caches").get<double>();
}

ControlCheck none(std::string what, double measured) {
  return {.what = std::move(what), .measured = measured, .low = 0, .high = 0};
}

}  // namespace

Result<Json> measure_replica(const StudySetup& setup, std::int64_t prompt) {
  Json values;
  for (const auto& [name, arm] : {std::pair("on", &setup.on), std::pair("off", &setup.off)}) {
    const Result<StudyArm> one = prepare(*setup.engine, *arm);
    if (!one) return one.error();
    const Result<StudyArm> two = prepare(*setup.engine, *arm);
    if (!two) return two.error();
    Result<Json> bits = compare_bits(*one, *two, tokens_of(setup, prompt), setup.new_tokens);
    if (!bits) return bits;
    values[name] = std::move(*bits);
  }
  return values;
}

ControlVerdict judge_replica(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 1, verdict);
  if (values.empty()) return verdict;
  double other = 0;
  for (const Json* const each : values) {
    other += differing(each->at("on")) + differing(each->at("off"));
  }
  verdict.checks.push_back(none("steps with other bits", other));
  return verdict;
}

Result<Json> measure_identity(const StudySetup& setup, std::int64_t prompt) {
  const auto ids = tokens_of(setup, prompt);
  const Arm second = with_formats_of(setup.off, setup.on);
  const Result<StudyArm> on = first_accepted(*setup.engine, setup.on, batch_invariant);
  const Result<StudyArm> off = first_accepted(*setup.engine, second, batch_invariant);
  Json values;
  if (on && off) {
    Result<Json> bits = compare_bits(*on, *off, ids, setup.new_tokens);
    if (!bits) return bits;
    values["invariant"] = std::move(*bits);
    return values;
  }
  // No cache is kept from step to step, but every pass has the shape that it has with one.
  values["invariant"] = not_applicable(on ? off.error().message : on.error().message);
  const Arm live = with_constructor(setup.on, CacheConstructor::live);
  const Result<StudyArm> kept = prepare(*setup.engine, live);
  if (!kept) return kept.error();
  const Result<StudyArm> rebuilt =
      prepare(*setup.engine, with_constructor(live, CacheConstructor::token_wise));
  if (!rebuilt) return rebuilt.error();
  Result<Json> bits = compare_bits(*kept, *rebuilt, ids, setup.new_tokens);
  if (!bits) return bits;
  values["same_shapes"] = std::move(*bits);
  return values;
}

ControlVerdict judge_identity(const ControlRecords& records) {
  ControlVerdict verdict;
  double invariant = 0;
  std::optional<double> same_shapes;
  const auto values = measured_values(records, 2, verdict);
  for (const Json* const each : values) {
    if (const auto reason = reason_of(each->at("invariant"))) {
      add_reason(verdict, "batch-invariant kernels", *reason);
      same_shapes = same_shapes.value_or(0) + differing(each->at("same_shapes"));
    } else {
      invariant += differing(each->at("invariant"));
    }
  }
  if (values.empty()) return verdict;
  verdict.checks.push_back(same_shapes ? none("equal shapes: steps with other bits", *same_shapes)
                                       : none("on/off: steps with other bits", invariant));
  return verdict;
}

Result<Json> measure_exact_sums(const StudySetup& setup, std::int64_t prompt) {
  const Result<StudyArm> on = first_accepted(*setup.engine, setup.on, exact_sums);
  if (!on) return not_applicable(on.error().message);
  const Arm second = with_formats_of(setup.off, setup.on);
  const Result<StudyArm> off = first_accepted(*setup.engine, second, exact_sums);
  if (!off) return not_applicable(off.error().message);
  const auto ids = tokens_of(setup, prompt);
  Result<Json> bits = compare_bits(*on, *off, ids, setup.new_tokens);
  if (!bits) return bits;
  Json values = {{"bits", std::move(*bits)}, {"storage_kl", Json::array()}};
  const Result<StudyArm> reference = reference_arm(setup);
  if (!reference) return values;
  const std::array arms{AlongArm{&*on, ids}, AlongArm{&*reference, ids}};
  const auto add = [&](const AlongStep& step) -> Result<bool> {
    const auto distance = divergence(step.passes[0].logits, step.passes[1].logits);
    if (!distance) return distance.error();
    values["storage_kl"].push_back(json_of(distance->kl));
    return true;
  };
  const auto done = along_text(arms, {.new_tokens = setup.new_tokens}, add);
  if (!done) return done.error();
  return values;
}

ControlVerdict judge_exact_sums(const ControlRecords& records) {
  ControlVerdict verdict;
  const auto values = measured_values(records, 7, verdict);
  if (values.empty()) return verdict;
  double other = 0;
  for (const Json* const each : values) other += differing(each->at("bits"));
  verdict.checks.push_back(none("on/off: steps with other bits", other));
  const auto storage = numbers_of(values, "storage_kl");
  if (storage.empty()) return verdict;
  verdict.checks.push_back({.what = "error of storage left: mean KL (nats)",
                            .measured = mean_of(storage),
                            .low = divergence_floor});
  return verdict;
}

namespace {

/// A way to build the cache that must give the bits of the live one.
struct ConstructorRow {
  std::string_view name;
  CacheConstructor constructor;
  std::int64_t rows;
  bool needs_invariance;  ///< its passes have other numbers of rows
};

constexpr std::array constructor_rows{
    ConstructorRow{"rebuilt token by token", CacheConstructor::token_wise, 0, false},
    ConstructorRow{"prompt token by token", CacheConstructor::all_token_wise, 0, true},
    ConstructorRow{"prompt in chunks of 8", CacheConstructor::chunked, 8, true},
    ConstructorRow{"aligned chunks of 8", CacheConstructor::aligned_chunk, 8, true},
    ConstructorRow{"all at once", CacheConstructor::one_shot, 0, true},
};

}  // namespace

Result<Json> measure_constructors(const StudySetup& setup, std::int64_t prompt) {
  constexpr std::array<std::string_view, 1> as_it_is{""};
  Json cells = Json::array();
  for (const ConstructorRow& row : constructor_rows) {
    const std::span<const std::string_view> settings =
        row.needs_invariance ? std::span<const std::string_view>(batch_invariant) : as_it_is;
    const Arm live = with_constructor(setup.on, CacheConstructor::live);
    const Result<StudyArm> first = first_accepted(*setup.engine, live, settings);
    const Result<StudyArm> second = first_accepted(
        *setup.engine, with_constructor(setup.on, row.constructor, row.rows), settings);
    Json cell = {{"name", row.name}};
    if (!first || !second) {
      cell.update(not_applicable(first ? second.error().message : first.error().message));
    } else {
      Result<Json> bits = compare_bits(*first, *second, tokens_of(setup, prompt), setup.new_tokens);
      if (!bits) return bits;
      cell["bits"] = std::move(*bits);
    }
    cells.push_back(std::move(cell));
  }
  return Json{{"cells", std::move(cells)}};
}

ControlVerdict judge_constructors(const ControlRecords& records) {
  ControlVerdict verdict;
  double other = 0;
  bool is_measured = false;
  for (const Json* const each : measured_values(records, 8, verdict)) {
    for (const Json& cell : each->at("cells")) {
      if (const auto reason = reason_of(cell)) {
        add_reason(verdict, cell.at("name").get<std::string>(), *reason);
        continue;
      }
      is_measured = true;
      other += differing(cell.at("bits"));
    }
  }
  if (is_measured) verdict.checks.push_back(none("steps with other bits", other));
  return verdict;
}

}  // namespace kvsim::experiments
