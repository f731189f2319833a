// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/gqa.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/metrics/drift.h"
#include "experiments/protocol/along_text.h"
#include "experiments/protocol/forced_drift.h"
#include "experiments/studies/gqa_sweep.h"
#include "experiments/studies/gqa_tables.h"
#include "experiments/tables.h"
#include "experiments/work.h"
#include "run/divergence.h"

namespace kvsim::experiments {
namespace {

constexpr std::string_view model_part = "model";
constexpr std::string_view repeated_setting = "kv-heads=repeated";

/// Kernels of both models.
struct KernelRow {
  std::string_view name;
  std::span<const std::string_view> settings;  ///< the first that the engine accepts counts
};
constexpr std::array<std::string_view, 1> own_settings{""};
constexpr std::array kernel_rows{KernelRow{"its own", own_settings},
                                 KernelRow{"one reduction", batch_invariant}};

/// The four arms, in this order.
enum ArmIndex : std::size_t { shared_on, shared_off, repeated_on, repeated_off, arm_count };

/// Pairs of them that are compared.
struct PairRow {
  std::string_view name;
  ArmIndex first;
  ArmIndex second;
};
constexpr std::array pair_rows{PairRow{"shared", shared_on, shared_off},
                               PairRow{"repeated", repeated_on, repeated_off},
                               PairRow{"between", shared_on, repeated_on}};

Result<std::vector<StudyArm>> arms_of(const StudySetup& setup, const KernelRow& row) {
  std::vector<StudyArm> arms;
  arms.reserve(arm_count);
  for (const std::string_view heads : {std::string_view(), repeated_setting}) {
    for (const Arm* const arm : {&setup.on, &setup.off}) {
      const Result<Arm> with_heads = with_settings(*arm, heads);
      if (!with_heads) return with_heads.error();
      Result<StudyArm> prepared = first_accepted(*setup.engine, *with_heads, row.settings);
      if (!prepared) return prepared.error();
      arms.push_back(std::move(*prepared));
    }
  }
  return arms;
}

/// Hidden states of two passes, first and last layer, and their logits.
Result<bool> add_step(const softfloat::Format& format, const EnginePass& a, const EnginePass& b,
                      Json& pair) {
  std::vector<const StateValues*> first;
  std::vector<const StateValues*> second;
  const auto collect = [](const EnginePass& pass, std::vector<const StateValues*>& list) {
    for (const StateValues& each : pass.values) {
      if (each.operation == "hidden") list.push_back(&each);
    }
  };
  collect(a, first);
  collect(b, second);
  if (first.empty() || first.size() != second.size()) {
    return Error{ErrorKind::unavailable, "hidden states behind each layer"};
  }
  bool differs = a.logits != b.logits;
  for (std::size_t layer = 0; layer < first.size(); ++layer) {
    const auto drift = metrics::drift(format, first[layer]->values, second[layer]->values);
    if (!drift) return drift.error();
    differs = differs || drift->differing > 0;
    if (layer == 0) pair["first"].push_back(json_of(drift->relative));
    if (layer + 1 == first.size()) pair["last"].push_back(json_of(drift->relative));
  }
  const Result<Divergence> distance = divergence(a.logits, b.logits);
  if (!distance) return distance.error();
  pair["kl"].push_back(json_of(distance->kl));
  pair["differs"].push_back(differs);
  return true;
}

Result<Json> compare_models(const StudySetup& setup, const KernelRow& row,
                            std::span<const TokenId> prompt) {
  const Result<std::vector<StudyArm>> arms = arms_of(setup, row);
  if (!arms && arms.error().kind == ErrorKind::unavailable) {
    return Json{{"left_out", arms.error().message}};
  }
  if (!arms) return arms.error();
  std::vector<AlongArm> along;
  along.reserve(arms->size());
  for (const StudyArm& arm : *arms) along.push_back({&arm, prompt});
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const std::vector<std::int64_t> checkpoints = usual_checkpoints(setup.new_tokens);
  Json result = {{"dispatch", arms->front().engine->dispatch()}, {"factor", 1}};
  for (const PairRow& pair : pair_rows) {
    result[std::string(pair.name)] = {{"first", Json::array()},
                                      {"last", Json::array()},
                                      {"kl", Json::array()},
                                      {"differs", Json::array()}};
  }
  const softfloat::Format& format = arms->front().engine->activation_format();
  const auto visit = [&](const AlongStep& step) -> Result<bool> {
    if (std::ranges::find(checkpoints, step.step) == checkpoints.end()) return true;
    result["factor"] = step.sequences[repeated_on].sequence().state_shape().kv_heads /
                       step.sequences[shared_on].sequence().state_shape().kv_heads;
    for (const PairRow& pair : pair_rows) {
      Result<bool> added = add_step(format, step.passes[pair.first], step.passes[pair.second],
                                    result[std::string(pair.name)]);
      if (!added) return added;
    }
    return true;
  };
  const Result<bool> done = along_text(
      along,
      {.new_tokens = setup.new_tokens, .request = {.layer_values = true}, .stop_tokens = stops},
      visit);
  if (!done) return done.error();
  return result;
}

class Gqa : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override {
    return summarize_gqa(records);
  }
};

/// A text of each arm, with the kernels that the engine has.
Result<TextGroup> texts_of(const StudySetup& setup) {
  TextGroup texts{.steps = setup.new_tokens};
  for (const KernelRow& row : kernel_rows) {
    Result<std::vector<StudyArm>> arms = arms_of(setup, row);
    if (!arms && arms.error().kind == ErrorKind::unavailable) continue;  // left out
    if (!arms) return arms.error();
    for (StudyArm& arm : *arms) texts.arms.emplace_back(std::move(arm));
  }
  return texts;
}

Result<std::vector<StudyUnit>> Gqa::units(const StudySetup& setup) const {
  Result<TextGroup> texts = texts_of(setup);
  if (!texts) return texts.error();
  std::vector<StudyUnit> list;
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> work = texts->work(prompt_tokens(setup, i));
    if (!work) return work.error();
    list.push_back({std::string(model_part), i, 0, *work});
  }
  const std::int64_t seeds = std::min(gqa_seeds, std::ssize(setup.prompts));
  for (const GqaSweep& sweep : gqa_sweeps) {
    for (const std::int64_t value : sweep.values) {
      for (std::int64_t seed = 1; seed <= seeds; ++seed) {
        list.push_back({sweep_part(sweep, value), 0, static_cast<std::uint64_t>(seed), gqa_rows});
      }
    }
  }
  return list;
}

Result<Json> Gqa::compute(const StudySetup& setup, const StudyUnit& unit) const {
  if (const std::optional<SweepPlace> place = sweep_place(unit.part)) {
    return measure_sweep(setup, *place, unit.seed);
  }
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  Json kernels = Json::object();
  for (const KernelRow& row : kernel_rows) {
    Result<Json> compared = compare_models(setup, row, prompt.prompt.ids);
    if (!compared) return compared.error();
    kernels[std::string(row.name)] = std::move(*compared);
  }
  return Json{{"kernels", std::move(kernels)}};
}

}  // namespace

std::unique_ptr<Study> make_gqa() { return std::make_unique<Gqa>(); }

}  // namespace kvsim::experiments
