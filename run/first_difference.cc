// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/first_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

using Steps = std::vector<const StepRecord*>;

/// One side: what a prompt's arm did, and what it was fed.
struct Side {
  Steps own;
  Steps fed;  ///< the first arm's under teacher forcing, else its own
};

/// Every prompt of one arm.
struct ArmRecords {
  std::map<std::int64_t, const PromptRecord*> prompts;
  std::map<std::int64_t, Side> sides;
};

ArmRecords records_of_arm(const Records& records, std::string_view arm) {
  ArmRecords result;
  std::map<std::int64_t, std::string_view> feeding;
  for (const PromptRecord& prompt : records.prompts) {
    result.prompts[prompt.prompt] = &prompt;
    const RecordRun& run = prompt.run;
    feeding[prompt.prompt] =
        run.teacher_forced && !run.arms.empty() ? std::string_view(run.arms[0].label) : arm;
  }
  for (const StepRecord& step : records.steps) {
    if (step.arm == arm) result.sides[step.prompt].own.push_back(&step);
    if (step.arm == feeding[step.prompt]) result.sides[step.prompt].fed.push_back(&step);
  }
  return result;
}

void compare_state(const StepRecord& first, const StepRecord& second, PromptDifference& found) {
  using Key = std::tuple<std::int64_t, std::string_view, std::int64_t, std::int64_t>;
  const auto key = [](const StateDigest& entry) {
    return Key{entry.layer, entry.operation, entry.head, entry.position};
  };
  std::map<Key, std::string_view> others;
  for (const StateDigest& entry : second.digests.state) others[key(entry)] = entry.digest;
  for (const StateDigest& entry : first.digests.state) {
    const auto other = others.find(key(entry));
    if (other == others.end()) continue;
    ++found.state_digests;
    if (!found.state && other->second != entry.digest) {
      found.state =
          StateDifference{first.step, entry.layer, entry.operation, entry.head, entry.position};
    }
  }
}

void compare_layers(const std::vector<std::string>& first, const std::vector<std::string>& second,
                    std::int64_t step, std::int64_t& count,
                    std::optional<LayerDifference>& difference) {
  for (std::size_t layer = 0; layer < std::min(first.size(), second.size()); ++layer) {
    ++count;
    if (!difference && first[layer] != second[layer]) {
      difference = LayerDifference{step, static_cast<std::int64_t>(layer)};
    }
  }
}

void compare_levels(const StepRecord& first, const StepRecord& second, PromptDifference& found) {
  compare_state(first, second, found);
  compare_layers(first.digests.layer, second.digests.layer, first.step, found.layer_digests,
                 found.layer);
  compare_layers(first.digests.route, second.digests.route, first.step, found.route_digests,
                 found.route);
  if (!first.digests.token.empty() && !second.digests.token.empty()) {
    ++found.token_digests;
    if (!found.logits && first.digests.token != second.digests.token) found.logits = first.step;
  }
  if (!found.token && first.token != second.token) {
    found.token = TokenFlip{first.step, first.token, second.token, first.margin, second.margin};
  }
}

std::vector<std::int64_t> sorted_ids(const StepRecord& step) {
  std::vector<std::int64_t> ids;
  ids.reserve(step.top.size());
  for (const RecordTop& entry : step.top) ids.push_back(entry.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<TokenLogProbability> log_probabilities(const StepRecord& step) {
  std::vector<TokenLogProbability> list;
  list.reserve(step.top.size());
  for (const RecordTop& entry : step.top) list.push_back({entry.id, entry.logprob});
  return list;
}

Result<StepComparison> compare_step(const StepRecord& first, const StepRecord& second,
                                    bool same_context) {
  StepComparison step;
  step.step = first.step;
  step.same_context = same_context;
  const std::vector<std::int64_t> a = sorted_ids(first);
  const std::vector<std::int64_t> b = sorted_ids(second);
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(step.left));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(step.entered));
  if (a.empty() || b.empty()) return step;
  const Result<KlLowerBound> kl =
      kl_lower_bound(log_probabilities(first), log_probabilities(second));
  if (!kl) {
    return Error{kl.error().kind, fmt::format("prompt {}, step {}: {}", first.prompt, first.step,
                                              kl.error().message)};
  }
  step.kl = *kl;
  return step;
}

std::vector<ChurnRow> churn_table(const std::vector<StepComparison>& steps) {
  std::map<std::int64_t, ChurnRow> rows;
  for (const StepComparison& step : steps) {
    if (!step.same_context) continue;
    for (const std::int64_t id : step.entered) ++rows[id].entered;
    for (const std::int64_t id : step.left) ++rows[id].left;
  }
  std::vector<ChurnRow> table;
  table.reserve(rows.size());
  for (const auto& [id, row] : rows) table.push_back({id, row.entered, row.left});
  std::sort(table.begin(), table.end(), [](const ChurnRow& a, const ChurnRow& b) {
    const std::int64_t changes_a = a.entered + a.left;
    const std::int64_t changes_b = b.entered + b.left;
    return changes_a > changes_b || (changes_a == changes_b && a.id < b.id);
  });
  return table;
}

Result<PromptDifference> compare_prompt(std::int64_t prompt, const Side& first,
                                        const Side& second) {
  PromptDifference found;
  found.prompt = prompt;
  found.first_steps = std::ssize(first.own);
  found.second_steps = std::ssize(second.own);
  bool same_context = true;
  for (std::size_t step = 0; step < std::min(first.own.size(), second.own.size()); ++step) {
    compare_levels(*first.own[step], *second.own[step], found);
    Result<StepComparison> compared =
        compare_step(*first.own[step], *second.own[step], same_context);
    if (!compared) return compared.error();
    found.steps.push_back(std::move(*compared));
    // What was fed for the next step. Where a feeding arm has ended, nothing is known.
    same_context = same_context && step < first.fed.size() && step < second.fed.size() &&
                   first.fed[step]->token == second.fed[step]->token;
  }
  found.churn = churn_table(found.steps);
  return found;
}

}  // namespace

Result<RecordComparison> compare_records(const Records& first, std::string_view first_arm,
                                         const Records& second, std::string_view second_arm) {
  const auto fail = [](std::string message) { return Error{ErrorKind::usage, std::move(message)}; };
  ArmRecords a = records_of_arm(first, first_arm);
  ArmRecords b = records_of_arm(second, second_arm);
  for (const auto& [records, arm] : {std::pair{&a, first_arm}, std::pair{&b, second_arm}}) {
    const bool has_steps = std::any_of(records->sides.begin(), records->sides.end(),
                                       [](const auto& side) { return !side.second.own.empty(); });
    if (!has_steps) {
      return fail(
          fmt::format("arm {} has no steps; accepted: a label that the records have", quote(arm)));
    }
  }
  RecordComparison comparison;
  for (const auto& [prompt, head] : a.prompts) {
    const auto other = b.prompts.find(prompt);
    if (other == b.prompts.end()) {
      ++comparison.only_in_first;
      continue;
    }
    if (head->prompt_ids != other->second->prompt_ids) {
      return fail(
          fmt::format("prompt {}: the two records have other prompt_ids; accepted: records "
                      "of the same prompts",
                      prompt));
    }
    Result<PromptDifference> found = compare_prompt(prompt, a.sides[prompt], b.sides[prompt]);
    if (!found) return found.error();
    comparison.prompts.push_back(std::move(*found));
  }
  comparison.only_in_second = std::ssize(b.prompts) - std::ssize(comparison.prompts);
  if (comparison.prompts.empty()) {
    return Error{ErrorKind::cannot_tell,
                 "no prompt is in both records; accepted: records of the same prompts"};
  }
  return comparison;
}

}  // namespace kvsim
