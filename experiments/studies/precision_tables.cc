// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/precision_tables.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/statistics/proportions.h"
#include "experiments/studies/precision_figures.h"
#include "experiments/studies/precision_rows.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// A share with its interval over prompts, in percent.
SummaryCell share_cell(const MeanOverPrompts& share) {
  const std::optional<double>& mean = share.mean;
  const std::optional<statistics::Estimate>& interval = share.interval;
  if (!mean) return cell(std::optional<double>());
  SummaryCell shown{fmt::format("{:.2f} %", 100 * *mean), json_of(mean)};
  if (interval) {
    shown.text += fmt::format(" ({:.2f} to {:.2f})", 100 * interval->low, 100 * interval->high);
    shown.value = json_of(*interval);
    shown.value["value"] = *mean;
  }
  return shown;
}

/// The rows that the engine has, in their order; why not, of the others.
struct Rows {
  std::vector<std::string> present;
  std::vector<std::string> notes;
};

Rows rows_of(const StudyRecords& records) {
  Rows rows;
  const Json& first = records.units.front().values.at("rows");
  for (const auto& [name, values] : first.items()) {
    if (values.contains("left_out")) {
      rows.notes.push_back(
          fmt::format("{} left out: {}", name, values.at("left_out").get<std::string>()));
    } else {
      rows.present.push_back(name);
    }
  }
  return rows;
}

bool has_head(const StudyRecords& records, const std::string& row) {
  const Json& side = records.units.front().values.at("rows").at(row).at("on");
  return !side.at("head").empty();
}

Result<SummaryTable> agreement_table(const StudyRecords& records, const Rows& rows, Json& result) {
  SummaryTable table;
  table.title = "along the greedy text of the reference";
  table.columns = {
      {"precision", "precision", "", true},          {"steps", "steps", ""},
      {"agree", "the reference's token (95 %)", ""}, {"flips", "on and off differ (95 %)", ""},
      {"kl", "KL from the reference", "nats"},       {"largest_kl", "largest", "nats"}};
  std::uint64_t stream = 0;
  for (const std::string& row : rows.present) {
    const PrecisionSteps steps = precision_steps(records, row, head_margin_ulps);
    const Result<PrecisionTexts> texts = precision_texts(records, row);
    if (!texts) return texts.error();
    const Result<MeanOverPrompts> agree = mean_over_prompts(steps.agree, stream++);
    if (!agree) return agree.error();
    const Result<MeanOverPrompts> flips = mean_over_prompts(steps.flip, stream++);
    if (!flips) return flips.error();
    table.rows.push_back({cell(row), cell(texts->steps), share_cell(*agree), share_cell(*flips),
                          cell(texts->kl), cell(texts->largest_kl)});
    result[row] = {{"steps", texts->steps},
                   {"agree", share_cell(*agree).value},
                   {"flips", share_cell(*flips).value},
                   {"kl", json_of(texts->kl)},
                   {"largest_kl", json_of(texts->largest_kl)}};
  }
  table.notes = {
      fmt::format("reference: {}, with the cache; steps: of both arms",
                  records.units.front().values.at("reference").at("dispatch").get<std::string>())};
  table.notes.insert(table.notes.end(), rows.notes.begin(), rows.notes.end());
  return table;
}

Result<SummaryTable> metrics_table(const StudyRecords& records, const Rows& rows, Json& result) {
  SummaryTable table;
  table.title = "own texts, with the cache against without it";
  table.columns = {{"precision", "precision", "", true},
                   {"diverging", "diverging (95 %)", ""},
                   {"std_at_acc", "Std@Acc", ""},
                   {"avg_std_at_output_length", "Avg_Std@Output_Length", "tokens"},
                   {"div_index", "Div_Index", "token"},
                   {"avg_std_at_top1_prob", "Avg_Std@top1_prob", ""}};
  for (const std::string& row : rows.present) {
    const Result<PrecisionTexts> texts = precision_texts(records, row);
    if (!texts) return texts.error();
    const auto share = statistics::wilson_interval({texts->parted, texts->texts});
    if (!share) return share.error();
    const std::optional<double> accuracy =
        texts->answers == texts->texts ? std::optional(texts->metrics.std_at_acc) : std::nullopt;
    table.rows.push_back({cell(row), percent_cell(*share), cell(accuracy),
                          cell(texts->metrics.avg_std_at_output_length), cell(texts->div_index),
                          cell(texts->metrics.avg_std_at_top1_prob)});
    Json& numbers = result[row];
    numbers["texts"] = texts->texts;
    numbers["diverging"] = json_of(*share);
    numbers["std_at_acc"] = json_of(accuracy);
    numbers["avg_std_at_output_length"] = texts->metrics.avg_std_at_output_length;
    numbers["div_index"] = json_of(texts->div_index);
    numbers["avg_std_at_top1_prob"] = json_of(texts->metrics.avg_std_at_top1_prob);
  }
  table.notes = {
      "the metrics of arXiv 2506.09501 over two configurations, on and off; Div_Index: "
      "mean of the texts that diverge",
      "Std@Acc: where every prompt has a known answer"};
  return table;
}

Result<SummaryTable> head_table(const StudyRecords& records, const std::string& row, Json& result) {
  SummaryTable table;
  table.title = fmt::format("{} where the margin is small", row);
  table.columns = {{"margin", "margin at most", "ulp", true},
                   {"agree", "the reference's token (95 %)", ""},
                   {"flips", "on and off differ (95 %)", ""},
                   {"cost", "steps with the second head (95 %)", ""}};
  std::uint64_t stream = 100;
  result[row]["margins"] = Json::array();
  for (const double margin : swept_margins) {
    const PrecisionSteps steps = precision_steps(records, row, margin);
    const Result<MeanOverPrompts> agree = mean_over_prompts(steps.agree, stream++);
    if (!agree) return agree.error();
    const Result<MeanOverPrompts> flips = mean_over_prompts(steps.flip, stream++);
    if (!flips) return flips.error();
    const Result<MeanOverPrompts> cost = mean_over_prompts(steps.head, stream++);
    if (!cost) return cost.error();
    const std::string shown = margin < 0 ? "none" : fmt::format("{}", margin);
    table.rows.push_back({cell(shown), share_cell(*agree), share_cell(*flips), share_cell(*cost)});
    result[row]["margins"].push_back({{"margin_ulps", margin},
                                      {"agree", share_cell(*agree).value},
                                      {"flips", share_cell(*flips).value},
                                      {"cost", share_cell(*cost).value}});
  }
  table.notes = {
      fmt::format("margin: of the two largest logits, in units in the last place of the "
                  "first head's format; own texts use {}",
                  head_margin_ulps)};
  return table;
}

}  // namespace

Result<StudySummary> summarize_precision(const StudyRecords& records) {
  if (records.units.empty()) return Error{ErrorKind::cannot_tell, "no prompts"};
  const Rows rows = rows_of(records);
  StudySummary summary;
  summary.result = Json::object();
  summary.result["left_out"] = rows.notes;
  Result<SummaryTable> agreement = agreement_table(records, rows, summary.result);
  if (!agreement) return agreement.error();
  summary.tables.push_back(std::move(*agreement));
  Result<SummaryTable> metrics = metrics_table(records, rows, summary.result);
  if (!metrics) return metrics.error();
  summary.tables.push_back(std::move(*metrics));
  std::string parts;
  for (const std::string& row : rows.present) {
    const auto texts = precision_texts(records, row);
    if (!texts) return texts.error();
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", texts->parted, row);
    if (!has_head(records, row)) continue;
    Result<SummaryTable> head = head_table(records, row, summary.result);
    if (!head) return head.error();
    summary.tables.push_back(std::move(*head));
  }
  summary.headline = fmt::format("Of {} pairs of texts with and without the cache differ: {}.",
                                 records.units.size(), parts);
  return summary;
}

}  // namespace kvsim::experiments
