// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/controls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "experiments/controls/control.h"
#include "experiments/study_lines.h"
#include "experiments/tables.h"
#include "experiments/work.h"
#include "softfloat/sha256.h"

namespace kvsim::experiments {
namespace {

constexpr std::size_t most_prompts = 3;
constexpr std::size_t most_prompt_tokens = 32;
constexpr std::int64_t new_tokens = 8;

/// The name of a control's pieces in the records.
std::string part_of(const ControlRow& row) { return fmt::format("{} {}", row.number, row.name); }

class Controls : public Study {
 public:
  Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> Controls::units(const StudySetup& setup) const {
  Result<TextGroup> texts =
      TextGroup::of(*setup.engine, std::array{setup.on, setup.off}, setup.new_tokens);
  if (!texts) return texts.error();
  std::vector<StudyUnit> list;
  list.reserve(control_rows().size() * setup.prompts.size());
  for (const ControlRow& row : control_rows()) {
    for (std::int64_t prompt = 0; prompt < std::ssize(setup.prompts); ++prompt) {
      const Result<std::int64_t> both = texts->work(prompt_tokens(setup, prompt));
      if (!both) return both.error();
      // Half of the texts are each arm's, about.
      list.push_back({part_of(row), prompt, 0, row.texts * *both / 2});
    }
  }
  return list;
}

Result<Json> Controls::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const auto row = std::ranges::find(control_rows(), unit.part, part_of);
  return row->measure(setup, unit.prompt);
}

/// "0" or "4.975e-06"; what is allowed: "0", "<= 2e-05", ">= 0.1", "0.75 to 1.25".
std::string figure(double number) { return fmt::format("{:.4g}", number); }
std::string allowed_text(const ControlCheck& check) {
  if (check.low == check.high) return figure(check.low);
  const bool has_low = std::isfinite(check.low) && check.low != 0;
  if (!std::isfinite(check.high)) return fmt::format(">= {}", figure(check.low));
  if (!has_low) return fmt::format("<= {}", figure(check.high));
  return fmt::format("{} to {}", figure(check.low), figure(check.high));
}

Json json_of_checks(const std::vector<ControlCheck>& checks) {
  Json list = Json::array();
  for (const ControlCheck& check : checks) {
    list.push_back({{"what", check.what},
                    {"measured", json_of(check.measured)},
                    {"low", json_of(check.low)},
                    {"high", json_of(check.high)},
                    {"predicted", json_of(check.predicted)},
                    {"floor", json_of(check.floor)},
                    {"passed", check.passed()}});
  }
  return list;
}

Json json_of_reasons(const std::vector<ControlReason>& reasons) {
  Json list = Json::array();
  for (const ControlReason& reason : reasons) {
    list.push_back({{"parts", reason.parts}, {"reason", reason.text}});
  }
  return list;
}

/// A line for each reason, with the controls that it is the reason for.
class ReasonNotes {
 public:
  void add(int number, const ControlReason& reason) {
    std::string which = fmt::to_string(number);
    if (!reason.parts.empty()) which += fmt::format(" ({})", fmt::join(reason.parts, ", "));
    auto found = std::ranges::find(notes_, reason.text, &Note::text);
    if (found == notes_.end()) found = notes_.insert(found, Note{reason.text, {}});
    found->which.push_back(std::move(which));
  }
  [[nodiscard]] std::vector<std::string> take() const {
    std::vector<std::string> lines;
    lines.reserve(2 * notes_.size());
    for (const Note& note : notes_) {
      lines.push_back(fmt::format("not applicable here: {}", fmt::join(note.which, ", ")));
      lines.push_back(fmt::format("  {}", note.text));
    }
    return lines;
  }

 private:
  struct Note {
    std::string text;
    std::vector<std::string> which;
  };
  std::vector<Note> notes_;
};

SummaryTable empty_table() {
  SummaryTable table;
  table.title = "controls: rounding or a defect?";
  table.columns = {{"number", "#", ""},
                   {"name", "control", "", true},
                   {"outcome", "result", "", true},
                   {"what", "judged by", "", true},
                   {"measured", "measured", ""},
                   {"allowed", "allowed", "", true},
                   {"predicted", "predicted", ""},
                   {"floor", "floor", ""}};
  return table;
}

std::vector<SummaryCell> row_of(const ControlRow& row, const ControlVerdict& verdict) {
  const ControlCheck* const check = verdict.decisive();
  const SummaryCell number{fmt::to_string(row.number), row.number};
  if (check == nullptr) {
    return {number,
            cell(row.name),
            cell(to_string(verdict.outcome())),
            cell("-"),
            cell(std::optional<double>()),
            cell("-"),
            cell(std::optional<double>()),
            cell(std::optional<double>())};
  }
  return {number,
          cell(row.name),
          cell(to_string(verdict.outcome())),
          cell(check->what),
          cell(check->measured),
          cell(allowed_text(*check)),
          cell(check->predicted),
          cell(check->floor)};
}

std::string headline(const std::vector<int>& green, const std::vector<int>& failed,
                     const std::vector<int>& others) {
  std::string text = fmt::format("Controls: {} green", green.size());
  if (!failed.empty()) {
    text += fmt::format(", {} failed ({})", failed.size(), fmt::join(failed, ", "));
  }
  if (!others.empty()) text += fmt::format(", {} not applicable here", others.size());
  return text + ".";
}

Result<StudySummary> Controls::summarize(const StudyRecords& records) const {
  ControlRecords values;
  for (const StudyRecords::Unit& unit : records.units) {
    const auto row = std::ranges::find(control_rows(), unit.unit.part, part_of);
    if (row == control_rows().end()) {
      return Error{ErrorKind::file, "a control that this version does not have"};
    }
    values[row->number].push_back(unit.values);
  }
  StudySummary summary;
  SummaryTable table = empty_table();
  Json list = Json::array();
  ReasonNotes notes;
  std::vector<int> green;
  std::vector<int> failed;
  std::vector<int> others;
  for (const ControlRow& row : control_rows()) {
    const ControlVerdict verdict = row.judge(values);
    const ControlOutcome outcome = verdict.outcome();
    (outcome == ControlOutcome::green    ? green
     : outcome == ControlOutcome::failed ? failed
                                         : others)
        .push_back(row.number);
    table.rows.push_back(row_of(row, verdict));
    for (const ControlReason& reason : verdict.reasons) notes.add(row.number, reason);
    list.push_back({{"number", row.number},
                    {"name", row.name},
                    {"rounding_predicts", row.rounding},
                    {"artefact_predicts", row.artefact},
                    {"judged", row.judged},
                    {"outcome", to_string(outcome)},
                    {"checks", json_of_checks(verdict.checks)},
                    {"reasons", json_of_reasons(verdict.reasons)}});
  }
  table.notes = notes.take();
  summary.headline = headline(green, failed, others);
  if (!failed.empty()) {
    summary.failed = fmt::format("{} {} failed", failed.size() == 1 ? "control" : "controls",
                                 fmt::join(failed, ", "));
  }
  summary.tables.push_back(std::move(table));
  summary.result = {{"green", green},
                    {"failed", failed},
                    {"not_applicable", others},
                    {"controls", std::move(list)}};
  return summary;
}

/// Whether an arm has a plan for a prompt of so many tokens.
bool has_plan(const Arm& arm, std::size_t tokens) {
  return static_cast<bool>(cache_plan(arm, static_cast<std::int64_t>(tokens), 0));
}

}  // namespace

const StudyRow& controls_row() {
  static constexpr StudyRow row{
      "controls", "is it rounding? What must hold before a study says anything",
      []() -> std::unique_ptr<Study> { return std::make_unique<Controls>(); }};
  return row;
}

StudySetup controls_setup(const StudySetup& setup) {
  StudySetup controls = setup;
  controls.prompts.resize(std::min(setup.prompts.size(), most_prompts));
  for (StudyPrompt& each : controls.prompts) {
    std::vector<TokenId>& ids = each.prompt.ids;
    std::size_t tokens = most_prompt_tokens;
    while (tokens < ids.size() && !(has_plan(setup.on, tokens) && has_plan(setup.off, tokens))) {
      tokens *= 2;
    }
    ids.resize(std::min(ids.size(), tokens));
    each.answer.clear();
  }
  controls.strategies = {strategy_rows().front()};
  controls.seeds = {1};
  controls.new_tokens = new_tokens;
  controls.stops = false;
  return controls;
}

Result<std::string> controls_path(const StudySetup& setup, const std::string& folder) {
  const StudyRow& row = controls_row();
  const auto units = row.make()->units(setup);
  if (!units) return units.error();
  Json key = head_of(row.name, setup, *units);
  // An arm's settings name a dispatch only where they change it; what it is otherwise, the model,
  // the engine and its environment decide.
  for (const Arm* const arm : {&setup.on, &setup.off}) {
    const Result<StudyArm> prepared = prepare(*setup.engine, *arm);
    if (!prepared) return prepared.error();
    key["dispatches"].push_back(prepared->engine->dispatch());
  }
  const std::string head = line_of(key);
  return fmt::format("{}/{}-{}.jsonl", folder, row.name,
                     sha256(std::as_bytes(std::span(head))).substr(0, 16));
}

}  // namespace kvsim::experiments
