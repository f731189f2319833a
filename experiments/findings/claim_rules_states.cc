// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "experiments/findings/claim_rules.h"

namespace kvsim::experiments {
namespace {

/// An exponent of the length up to which an error counts as flat.
constexpr double flat = 0.1;

}  // namespace

Judgement judge_flat_drift(const Json& drift) {
  const auto head_dim = number_at(drift, "/head_dim");
  const auto ratio = number_at(drift, "/generated/depth/relative/ratio");
  const auto low = number_at(drift, "/generated/depth/relative/ratio_interval/low");
  const auto high = number_at(drift, "/generated/depth/relative/ratio_interval/high");
  if (!head_dim || !ratio || !low || !high) return {};
  const std::string measured = fmt::format(
      "head_dim {:.0f}: relative L2 grows {:.3g} times from the first layer that differs to the "
      "last "
      "({:.3g} to {:.3g})",
      *head_dim, *ratio, *low, *high);
  if (*head_dim != 256) return {Verdict::cannot_tell, measured};
  return {*low <= 1 ? Verdict::reproduced : Verdict::not_reproduced, measured};
}

Judgement judge_error_and_length(const Json& falsify) {
  const std::string of = "/lengths/attention/";
  const auto stored = number_at(falsify, of + "p_output/exponent");
  const auto at_16 = number_at(falsify, of + "p_output/16");
  const auto at_128 = number_at(falsify, of + "p_output/128");
  const auto summed = number_at(falsify, of + "half/exponent");
  if (!stored || !at_16 || !at_128 || !summed) return {};
  const std::string measured = fmt::format(
      "rounding of stored p and output: {:.3g} % at 16 keys, {:.3g} % at 128 (length to the "
      "{:.2f}); "
      "sums in binary16 grow with the length to the {:.2f}",
      100 * *at_16, 100 * *at_128, *stored, *summed);
  if (*stored < flat && *summed > flat) return {Verdict::explained, measured};
  return {*summed < flat ? Verdict::reproduced : Verdict::not_reproduced, measured};
}

Judgement judge_eight_orders(const Json& falsify) {
  const auto half = number_at(falsify, "/formats/binary16/kl");
  const auto single = number_at(falsify, "/formats/binary32/kl");
  const auto evaluated = number_at(falsify, "/formats/binary32/kl_binary32");
  if (!half || !single || !evaluated || *half <= 0) return {};
  const double ratio = *single > 0 ? *half / *single : 0;
  std::string measured = fmt::format("{:.2g} nats in binary16, {:.2g} in binary32", *half, *single);
  if (ratio > 0) measured += fmt::format(": {:.1g} times less; u² predicts 6.7e7", ratio);
  measured += fmt::format("; the latter evaluated in binary32 reads {:.1g}", *evaluated);
  if (*single <= 0) return {Verdict::cannot_tell, measured};
  return {ratio >= 1e8 ? Verdict::reproduced : Verdict::explained, measured};
}

Judgement judge_grouped_queries(const Json& gqa) {
  const auto rank = number_at(gqa, "/R/trend/spearman");
  const auto low = number_at(gqa, "/R/trend/spearman/low");
  const auto high = number_at(gqa, "/R/trend/spearman/high");
  if (!rank || !low || !high || !gqa.at("R").contains("values")) return {};
  const Json& values = gqa.at("R").at("values");
  if (values.empty()) return {};
  const auto error_of = [](const Json& of) { return number_at(of, "/first").value_or(0); };
  const auto factor_of = [](const Json& of) { return number_at(of, "/value").value_or(0); };
  const std::string measured = fmt::format(
      "relative L2 behind layer 0 of seeded decoders: {:.2g} with R = {:.0f}, {:.2g} with R = "
      "{:.0f}; "
      "rank correlation with R {:.2f} ({:.2f} to {:.2f})",
      error_of(values.front()), factor_of(values.front()), error_of(values.back()),
      factor_of(values.back()), *rank, *low, *high);
  return {*low > 0 ? Verdict::reproduced : Verdict::not_reproduced, measured};
}

Judgement judge_residual_patches(const Json& localise) {
  if (!localise.contains("first_step")) return {};
  const Json& first = localise.at("first_step");
  if (!first.contains("hiddens") || first.at("hiddens").empty()) return {};
  const Json& all_layers = std::prev(first.at("hiddens").end()).value();
  const auto step = number_at(all_layers, "/step_kl/mean");
  const auto defined = number_at(all_layers, "/step_kl/defined");
  const auto free = number_at(all_layers, "/free_kl/mean");
  if (!step || !free || !defined || *defined == 0) return {};
  const std::string measured = fmt::format(
      "all layers restore {:.3g} % of the step that they are put into ({:.0f} prompts that differ "
      "there); by the paper's mean over later steps {:.3g} %",
      *step, *defined, *free);
  if (*step >= 100 && *free < 50) return {Verdict::explained, measured};
  return {*step < 50 ? Verdict::reproduced : Verdict::not_reproduced, measured};
}

Judgement judge_cache_holds_cause(const Json& localise) {
  const auto follows = [&](const std::string& direction, const char* field) {
    return number_at(localise, "/transplant/" + direction + "/part/K and V/" + field);
  };
  const auto live = follows("live_takes", "pooled");
  const auto other = follows("one_shot_takes", "pooled");
  const auto live_follows = follows("live_takes", "follows/successes");
  const auto other_follows = follows("one_shot_takes", "follows/successes");
  const auto trials = follows("live_takes", "follows/trials");
  if (!live || !other || !live_follows || !other_follows || !trials) return {};
  const std::string measured = fmt::format(
      "K and V of the other cache bring {:.4g} and {:.4g} % of the difference in the next token's "
      "logits; {:.0f} and {:.0f} of {:.0f} texts follow the donor",
      *live, *other, *live_follows, *other_follows, *trials);
  const bool whole = std::min(*live, *other) > 95;
  return {whole ? Verdict::reproduced : Verdict::not_reproduced, measured};
}

}  // namespace kvsim::experiments
