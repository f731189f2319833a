// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/localise.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/studies/localise_parts.h"

namespace kvsim::experiments {
namespace {

class Localise : public Study {
 public:
  [[nodiscard]] Result<std::vector<StudyUnit>> units(const StudySetup& setup) const override;
  [[nodiscard]] Result<Json> compute(const StudySetup& setup, const StudyUnit& unit) const override;
  [[nodiscard]] Result<StudySummary> summarize(const StudyRecords& records) const override;
};

Result<std::vector<StudyUnit>> Localise::units(const StudySetup& setup) const {
  if (setup.new_tokens < 3) {
    return Error{ErrorKind::usage,
                 fmt::format("localise with {} new tokens; accepted: 3 or more, as two caches "
                             "differ from the third step on",
                             setup.new_tokens)};
  }
  Result<LocaliseWork> work = LocaliseWork::of(setup);
  if (!work) return work.error();
  std::vector<StudyUnit> units;
  units.reserve(2 * setup.prompts.size());
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> fork = work->fork(prompt_tokens(setup, i));
    if (!fork) return fork.error();
    units.push_back({std::string(localise_fork_part), i, 0, *fork});
  }
  for (std::int64_t i = 0; i < std::ssize(setup.prompts); ++i) {
    const Result<std::int64_t> first_step = work->first_step(prompt_tokens(setup, i));
    if (!first_step) return first_step.error();
    units.push_back({std::string(localise_first_step_part), i, 0, *first_step});
  }
  return units;
}

Result<Json> Localise::compute(const StudySetup& setup, const StudyUnit& unit) const {
  const StudyPrompt& prompt = setup.prompts[static_cast<std::size_t>(unit.prompt)];
  return unit.part == localise_fork_part ? measure_fork(setup, prompt)
                                         : measure_first_step(setup, prompt);
}

Result<StudySummary> Localise::summarize(const StudyRecords& records) const {
  StudySummary summary;
  Result<bool> done = summarize_forks(records, summary);
  if (done) done = summarize_first_steps(records, summary);
  if (!done) return done.error();
  return summary;
}

}  // namespace

std::unique_ptr<Study> make_localise() { return std::make_unique<Localise>(); }

}  // namespace kvsim::experiments
