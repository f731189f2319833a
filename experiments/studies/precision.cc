// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/precision.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/metrics/answers.h"
#include "experiments/studies/precision_rows.h"
#include "experiments/studies/precision_tables.h"
#include "experiments/studies/precision_text.h"
#include "experiments/tables.h"
#include "experiments/work.h"

namespace kvsim::experiments {
namespace {

/// One side of a row, ready to run.
struct RowArms {
  StudyArm base;
  std::optional<StudyArm> head;
};

Result<RowArms> arms_of(const PrecisionRow& row, const Engine& engine, const Arm& arm) {
  std::vector<std::string_view> settings{row.settings.front()};
  if (!row.settings.back().empty()) settings.push_back(row.settings.back());
  Result<StudyArm> base = first_accepted(engine, arm, settings);
  if (!base) return base.error();
  RowArms arms{std::move(*base), {}};
  if (row.head.empty()) return arms;
  Result<StudyArm> head = first_accepted(engine, arms.base.arm, {&row.head, 1});
  if (!head) return head.error();
  arms.head = std::move(*head);
  return arms;
}

Json numbers_json(const std::vector<double>& numbers) {
  Json array = Json::array();
  for (const double each : numbers) array.push_back(json_of(each));
  return array;
}

/// Whether the text ends with the right answer; null where there is none to compare with.
Json correctness(const StudySetup& setup, const StudyPrompt& prompt,
                 const std::vector<std::int64_t>& tokens) {
  if (!setup.decode) return nullptr;
  const std::vector<TokenId> ids(tokens.begin(), tokens.end());
  const std::optional<bool> is_right =
      metrics::is_correct(setup.decode(ids), prompt.answer, metrics::AnswerRule::last_number);
  return is_right ? Json(*is_right) : Json(nullptr);
}

class Precision : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override {
    return summarize_precision(records);
  }
};

/// All texts of a prompt: the reference, and both sides of the rows that the engine has.
Result<TextGroup> texts_of(const StudySetup& setup) {
  TextGroup texts{.steps = setup.new_tokens};
  Result<StudyArm> widest = reference_arm(setup);
  if (!widest) return widest.error();
  texts.arms.emplace_back(std::move(*widest));
  for (const PrecisionRow& row : precision_rows) {
    for (const Arm* const arm : {&setup.on, &setup.off}) {
      Result<RowArms> arms = arms_of(row, *setup.engine, *arm);
      if (!arms) break;  // left out
      texts.arms.emplace_back(std::move(arms->base));
      std::optional<StudyArm>& head = arms->head;
      if (head) texts.arms.emplace_back(std::move(*head));
    }
  }
  return texts;
}

Result<std::vector<StudyUnit>> Precision::units(const StudySetup& setup) const {
  Result<TextGroup> texts = texts_of(setup);
  if (!texts) return texts.error();
  std::vector<StudyUnit> list;
  list.reserve(setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> work = texts->work(prompt_tokens(setup, i));
    if (!work) return work.error();
    list.push_back({"greedy", i, 0, *work});
  }
  return list;
}

Result<Json> side_json(const StudySetup& setup, const StudyUnit& unit, const RowArms& arms,
                       const ReferenceText& reference, const PrecisionOptions& options) {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const std::optional<StudyArm>& head = arms.head;
  const Result<PrecisionText> text =
      precision_text({&arms.base, head ? &*head : nullptr, head_margin_ulps}, prompt.prompt.ids,
                     reference, options);
  if (!text) return text.error();
  return Json{{"base", text->base},
              {"head", text->head},
              {"margin_ulps", numbers_json(text->margin_ulps)},
              {"kl", numbers_json(text->kl)},
              {"tokens", text->tokens},
              {"top1", numbers_json(text->top1)},
              {"correct", correctness(setup, prompt, text->tokens)}};
}

Result<Json> Precision::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  const std::vector<std::int64_t> stops =
      setup.stops ? setup.engine->stop_tokens() : std::vector<std::int64_t>();
  const PrecisionOptions options{.new_tokens = setup.new_tokens, .stop_tokens = stops};
  const Result<StudyArm> widest = reference_arm(setup);
  if (!widest) return widest.error();
  const Result<ReferenceText> reference = reference_text(*widest, prompt.prompt.ids, options);
  if (!reference) return reference.error();
  Json rows = Json::object();
  for (const PrecisionRow& row : precision_rows) {
    Json sides = Json::object();
    for (const auto& [name, arm] : {std::pair{"on", &setup.on}, std::pair{"off", &setup.off}}) {
      const Result<RowArms> arms = arms_of(row, *setup.engine, *arm);
      if (!arms) {
        sides = {{"left_out", arms.error().message}};
        break;
      }
      Result<Json> side = side_json(setup, unit, *arms, *reference, options);
      if (!side) return side.error();
      sides[name] = std::move(*side);
    }
    rows[std::string(row.name)] = std::move(sides);
  }
  return Json{
      {"reference", {{"dispatch", widest->engine->dispatch()}, {"tokens", reference->tokens}}},
      {"rows", std::move(rows)}};
}

}  // namespace

std::unique_ptr<Study> make_precision() { return std::make_unique<Precision>(); }

}  // namespace kvsim::experiments
