// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "experiments/findings/claim_rules.h"

namespace kvsim::experiments {
namespace {

/// Verdicts speak of greedy texts where there are some: they are the same whatever the seeds.
std::string strategy_of(const Json& behaviour) {
  if (behaviour.contains("greedy") || behaviour.empty()) return "/greedy";
  return "/" + behaviour.begin().key();
}

constexpr double significant = 0.05;
/// Fewer texts on one side say nothing.
constexpr double fewest_texts = 5;

}  // namespace

Judgement judge_kl_above_ten(const Json& behaviour) {
  const std::string of = strategy_of(behaviour);
  const auto forced = number_at(behaviour, of + "/same_tokens/kl");
  const auto steps = number_at(behaviour, of + "/same_tokens/steps");
  const auto every = number_at(behaviour, of + "/own_tokens/all/above_reported");
  const auto behind = number_at(behaviour, of + "/own_tokens/behind_the_fork/kl");
  const auto share = number_at(behaviour, of + "/own_tokens/behind_the_fork/above_reported");
  const auto unrelated = number_at(behaviour, of + "/plateau/unrelated");
  if (!forced || !steps || !every) return {};
  std::string measured = fmt::format(
      "{:.2g} nats over {:.0f} steps after the same tokens; above 10 at {:.3g} % of the steps of "
      "texts with tokens of their own",
      *forced, *steps, 100 * *every);
  if (behind && share) {
    measured +=
        fmt::format("; behind the fork {:.3g}, above 10 at {:.0f} %", *behind, 100 * *share);
    if (unrelated) measured += fmt::format(" (two unrelated prompts: {:.3g})", *unrelated);
  }
  if (*every >= 1) return {Verdict::reproduced, measured};
  const bool is_the_fork = behind && *behind > 100 * *forced;
  return {is_the_fork ? Verdict::explained : Verdict::not_reproduced, measured};
}

Judgement judge_every_text(const Json& behaviour) {
  const std::string of = strategy_of(behaviour);
  const auto texts = number_at(behaviour, of + "/texts");
  const auto parted = number_at(behaviour, of + "/parted");
  const auto low = number_at(behaviour, of + "/diverged/low");
  const auto high = number_at(behaviour, of + "/diverged/high");
  if (!texts || !parted || !low || !high || *texts == 0) return {};
  return {*parted == *texts ? Verdict::reproduced : Verdict::not_reproduced,
          fmt::format("{:.0f} of {:.0f} texts part ({:.1f} to {:.1f} %)", *parted, *texts,
                      100 * *low, 100 * *high)};
}

Judgement judge_accuracy(const Json& behaviour) {
  const std::string of = strategy_of(behaviour) + "/answers/last_number";
  const auto texts = number_at(behaviour, of + "/texts");
  const auto on = number_at(behaviour, of + "/on");
  const auto off = number_at(behaviour, of + "/off");
  const auto better_on = number_at(behaviour, of + "/better_on");
  const auto better_off = number_at(behaviour, of + "/better_off");
  const auto p = number_at(behaviour, of + "/p");
  if (!texts || !on || !off || !better_on || !better_off || !p) return {};
  const std::string measured = fmt::format(
      "{:.1f} % with, {:.1f} % without of {:.0f}; only with {:.0f}, only without {:.0f} (McNemar p "
      "= "
      "{:.2g})",
      100 * *on, 100 * *off, *texts, *better_on, *better_off, *p);
  if (*better_on + *better_off == 0) return {Verdict::cannot_tell, measured};
  const bool better = *better_on > *better_off && *p < significant;
  return {better ? Verdict::reproduced : Verdict::not_reproduced, measured};
}

Judgement judge_early_flips(const Json& boundary) {
  std::string source;
  double most = 0;
  if (!boundary.contains("order")) return {};
  for (const auto& [name, order] : boundary.at("order").items()) {
    const double early = number_at(order, "/own_tokens/early_and_late/early_texts").value_or(0);
    const double late = number_at(order, "/own_tokens/early_and_late/late_texts").value_or(0);
    if (std::min(early, late) <= most) continue;
    most = std::min(early, late);
    source = name;
  }
  if (most < fewest_texts) {
    return {Verdict::cannot_tell,
            fmt::format("fewer than {:.0f} texts part early, or late", fewest_texts)};
  }
  const std::string of = "/order/" + source;
  const auto own = number_at(boundary, of + "/own_tokens/early_and_late/ratio");
  const auto own_p = number_at(boundary, of + "/own_tokens/early_and_late/p");
  const auto same = number_at(boundary, of + "/same_tokens/early_and_late/ratio");
  const auto same_p = number_at(boundary, of + "/same_tokens/early_and_late/p");
  if (!own || !own_p || !same || !same_p) return {};
  const std::string measured = fmt::format(
      "source {}: early/late {:.3g} after their own tokens (p = {:.2g}), {:.3g} after the same "
      "tokens "
      "(p = {:.2g})",
      source, *own, *own_p, *same, *same_p);
  if (*own <= 1 || *own_p >= significant) return {Verdict::not_reproduced, measured};
  const bool arithmetic = *same > 1 && *same_p < significant;
  return {arithmetic ? Verdict::reproduced : Verdict::explained, measured};
}

}  // namespace kvsim::experiments
