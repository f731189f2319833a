// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/findings/claims.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "experiments/findings/claim_rules.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

// Claims and figures: arXiv 2604.15409, abstract and sections 4 to 6.
constexpr std::array rows{
    ClaimRow{"KL above 10 at every step", "10.68 to 12.83 nats, mean", "behaviour",
             judge_kl_above_ten},
    ClaimRow{"every text parts in FP16", "100 %, all strategies", "behaviour", judge_every_text},
    ClaimRow{"with the cache answers are more accurate", "better in 8 of 9 cells", "behaviour",
             judge_accuracy},
    ClaimRow{"texts that part early have the larger KL",
             "early/late 1.006 to 1.043, r = -0.12 to -0.20", "boundary", judge_early_flips},
    ClaimRow{"drift is flat with a head_dim of 256", "1.0 to 1.4 in 26 layers; 105x with 128",
             "drift", judge_flat_drift},
    ClaimRow{"accumulation errs by 0.036 %, whatever the length", "0.036 %, n = 16 to 128",
             "falsify", judge_error_and_length},
    ClaimRow{"FP32 has eight orders less KL", "11.46 against 2.5e-8", "falsify",
             judge_eight_orders},
    ClaimRow{"GQA amplifies at the first layer", "3.45 (MHA) to 25.76 (GQA 4:1), L2", "gqa",
             judge_grouped_queries},
    ClaimRow{"patching the residual stream recovers nothing", "-2.6 to -5.3 %, all layers",
             "localise", judge_residual_patches},
    ClaimRow{"the cache holds the cause", "by elimination; no K/V patch", "localise",
             judge_cache_holds_cause},
};

}  // namespace

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced:
      return "reproduced";
    case Verdict::not_reproduced:
      return "not reproduced";
    case Verdict::explained:
      return "explained";
    case Verdict::cannot_tell:
      break;
  }
  return "cannot tell";
}

std::span<const ClaimRow> claim_rows() { return rows; }

JudgedClaims judge_claims(const std::function<const Json*(std::string_view study)>& result_of) {
  JudgedClaims all;
  all.result = Json::array();
  all.table.title = "claims of arXiv 2604.15409";
  all.table.columns = {{"number", "#", ""},
                       {"claim", "claim", "", true},
                       {"reported", "reported there", "", true},
                       {"verdict", "here", "", true}};
  for (const ClaimRow& row : rows) {
    const Json* result = result_of(row.study);
    if (result == nullptr) continue;
    const Judgement judgement = row.judge(*result);
    const std::int64_t number = std::ssize(all.table.rows) + 1;
    const std::string_view verdict = verdict_text(judgement.verdict);
    all.table.rows.push_back({cell(number), cell(row.claim), cell(row.reported), cell(verdict)});
    const std::string_view measured =
        judgement.measured.empty() ? "not measured" : std::string_view(judgement.measured);
    all.table.notes.push_back(fmt::format("{}: {}", number, measured));
    all.result.push_back({{"claim", row.claim},
                          {"reported", row.reported},
                          {"study", row.study},
                          {"verdict", verdict},
                          {"measured", measured}});
  }
  return all;
}

std::optional<double> number_at(const Json& result, const std::string& pointer) {
  const Json::json_pointer path(pointer);
  if (!result.contains(path)) return std::nullopt;
  const Json* value = &result.at(path);
  if (value->is_object()) {
    const auto inner = value->find("value");
    if (inner == value->end()) return std::nullopt;
    value = &*inner;
  }
  if (!value->is_number()) return std::nullopt;
  return value->get<double>();
}

}  // namespace kvsim::experiments
