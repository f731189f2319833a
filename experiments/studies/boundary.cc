// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/protocol/pair_text.h"
#include "experiments/protocol/step_json.h"
#include "experiments/studies/boundary_figures.h"
#include "experiments/studies/boundary_law_rows.h"
#include "experiments/studies/boundary_margins.h"
#include "experiments/studies/boundary_order.h"
#include "experiments/studies/boundary_sources.h"
#include "experiments/tables.h"
#include "experiments/work.h"

namespace kvsim::experiments {
namespace {

class Boundary : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> Boundary::units(const StudySetup& setup) const {
  std::vector<StudyUnit> list;
  for (const ErrorSource& source : error_sources()) {
    const Result<std::optional<Arm>> arm = arm_of(source, setup);
    if (!arm) return arm.error();
    const std::optional<Arm>& second = *arm;
    if (!second) continue;
    if (!source.arm.empty()) {  // the setup's own arm has to be there
      const Result<bool> has = has_arm(setup, *second);
      if (!has) return has.error();
      if (!*has) continue;
    }
    Result<TextGroup> texts =
        TextGroup::of(*setup.engine, std::array{setup.on, *second}, setup.new_tokens);
    if (!texts) return texts.error();
    for (std::int64_t prompt = 0; prompt < std::ssize(setup.prompts); ++prompt) {
      const Result<std::int64_t> work = texts->work(prompt_tokens(setup, prompt));
      if (!work) return work.error();
      list.push_back({std::string(source.name), prompt, 0, *work});
    }
  }
  return list;
}

Result<Json> Boundary::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const auto source = std::ranges::find(error_sources(), unit.part, &ErrorSource::name);
  const Result<std::optional<Arm>> arm = arm_of(*source, setup);
  if (!arm) return arm.error();
  const Result<StudyArm> on = prepare(*setup.engine, setup.on);
  if (!on) return on.error();
  const Result<StudyArm> second = prepare(*setup.engine, arm->value_or(setup.off));
  if (!second) return second.error();
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const PairTextOptions options{.sampling = {},
                                .prompt_number = static_cast<std::uint64_t>(prompt.prompt.number),
                                .new_tokens = setup.new_tokens,
                                .stop_tokens = stops};
  const Result<PairText> pair = compare_texts(*on, *second, prompt.prompt.ids, options);
  if (!pair) {
    // A model may overflow in another format: its logits are then no numbers.
    if (source->arm.empty() || pair.error().kind != ErrorKind::usage) return pair.error();
    return Json{{"against", to_text(second->arm)}, {"refused", pair.error().message}};
  }
  Json apart = Json::array();
  for (const double kl : pair->kl_apart) apart.push_back(json_of(kl));
  const std::optional<std::int64_t>& flip = pair->flip;
  return Json{{"against", to_text(second->arm)},
              {"tokens", pair->first_tokens},
              {"flip", flip ? Json(*flip) : Json(nullptr)},
              {"forced", steps_json(pair->forced)},
              {"kl_apart", std::move(apart)}};
}

Result<StudySummary> Boundary::summarize(const StudyRecords& records) const {
  const BoundaryFigures figures = boundary_figures(records);
  StudySummary summary;
  summary.result = Json::object();
  add_margins(figures, summary);
  Result<bool> added = add_law(figures, summary);
  if (added) added = add_order(figures, summary);
  if (!added) return added.error();
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_boundary() { return std::make_unique<Boundary>(); }

}  // namespace kvsim::experiments
