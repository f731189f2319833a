// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/controls/control_arms.h"
#include "experiments/controls/measures.h"
#include "experiments/protocol/along_text.h"
#include "experiments/tables.h"
#include "run/divergence.h"

/// Defects on purpose: each must be seen.
namespace kvsim::experiments {
namespace {

struct DefectRow {
  std::string_view name;
  std::string_view settings;  ///< of the arm; empty: the defect lies in the prompt
  Padding padding = Padding::none;
  std::int64_t longer = 0;      ///< tokens that a neighbour in the batch has more
  bool is_a_step_late = false;  ///< the arm is not given the prompt's last token
  bool forgets_half = false;    ///< the arm is not given the first half of the prompt
};

constexpr std::array defect_rows{
    DefectRow{"positions + 1", "plant=position+1"},
    DefectRow{"RoPE left out", "rope=none"},
    DefectRow{"mask off", "plant=mask-missing"},
    DefectRow{"a stale entry of the cache", "plant=stale-cache-entry"},
    DefectRow{"scale of the scores twice", "plant=scale-doubled"},
    DefectRow{"K/V heads exchanged", "plant=swapped-heads"},
    DefectRow{"positions of the padding", "plant=pad-positions", Padding::left, 3},
    DefectRow{"a step late", "", Padding::none, 0, true},
    DefectRow{"half of the prompt forgotten", "", Padding::none, 0, false, true},
};

Result<Json> measure_defect(const StudySetup& setup, std::int64_t prompt, const DefectRow& row) {
  const std::array settings{row.settings};
  Result<StudyArm> plain = prepare(*setup.engine, setup.on);
  if (!plain) return plain.error();
  Result<StudyArm> defect = first_accepted(*setup.engine, setup.on, settings);
  if (!defect) return defect.error();
  const auto ids = tokens_of(setup, prompt);
  for (StudyArm* const arm : {&*plain, &*defect}) {
    arm->launch.padding = row.padding;
    if (row.longer > 0) arm->launch.neighbours = {std::ssize(ids) + row.longer};
  }
  auto given = ids;
  if (row.forgets_half) given = given.last(given.size() - given.size() / 2);
  if (row.is_a_step_late) given = given.first(given.size() - 1);
  if (given.empty()) return Error{ErrorKind::unavailable, "a prompt of one token"};
  const std::array arms{AlongArm{&*plain, ids}, AlongArm{&*defect, given}};
  Json kl = Json::array();
  const auto add = [&](const AlongStep& step) -> Result<bool> {
    const auto distance = divergence(step.passes[0].logits, step.passes[1].logits);
    if (!distance) return distance.error();
    kl.push_back(json_of(distance->kl));
    return true;
  };
  const auto done = along_text(arms, {.new_tokens = setup.new_tokens}, add);
  if (!done) return done.error();
  return kl;
}

}  // namespace

Result<Json> measure_defects(const StudySetup& setup, std::int64_t prompt) {
  Json cells = Json::array();
  for (const DefectRow& row : defect_rows) {
    Json cell = {{"name", row.name}};
    Result<Json> kl = measure_defect(setup, prompt, row);
    if (kl) {
      cell["kl"] = std::move(*kl);
    } else {
      cell.update(not_applicable(kl.error().message));
    }
    cells.push_back(std::move(cell));
  }
  return Json{{"cells", std::move(cells)}};
}

ControlVerdict judge_defects(const ControlRecords& records) {
  ControlVerdict verdict;
  std::vector<std::pair<std::string, std::vector<const Json*>>> defects;
  for (const Json* const values : measured_values(records, 12, verdict)) {
    for (const Json& cell : values->at("cells")) {
      const auto name = cell.at("name").get<std::string>();
      if (const auto reason = reason_of(cell)) {
        add_reason(verdict, name, *reason);
        continue;
      }
      auto found = std::ranges::find(defects, name, [](const auto& each) { return each.first; });
      if (found == defects.end()) found = defects.insert(found, {name, {}});
      found->second.push_back(&cell);
    }
  }
  const std::optional<Rounding> rounding = rounding_kl(records);
  if (!rounding) {
    add_reason(verdict, "", "control 3 has no prediction");
    return verdict;
  }
  for (const auto& [name, cells] : defects) {
    verdict.checks.push_back({.what = name + ": mean KL (nats)",
                              .measured = mean_of(numbers_of(cells, "kl")),
                              .low = rounding->allowed,
                              .predicted = rounding->predicted,
                              .floor = rounding->floor});
  }
  std::ranges::sort(verdict.checks, {}, &ControlCheck::measured);
  return verdict;
}

}  // namespace kvsim::experiments
