// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/boundary_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "experiments/statistics/cannot_tell.h"
#include "experiments/statistics/correlation.h"
#include "experiments/statistics/samples.h"
#include "experiments/statistics/two_samples.h"
#include "experiments/tables.h"

namespace kvsim::experiments {
namespace {

/// One way to give a text that has parted a KL.
struct TextKl {
  const char* key;
  const char* name;
  bool same_tokens;
  std::optional<double> (*of)(const PartedText&);
};
constexpr std::array<TextKl, 3> text_kls{
    {{"own_tokens", "all steps", false,
      [](const PartedText& text) { return std::optional(text.own_tokens_kl); }},
     {"behind_the_fork", "behind the fork", false,
      [](const PartedText& text) { return text.apart_kl; }},
     {"same_tokens", "all steps", true,
      [](const PartedText& text) { return std::optional(text.same_tokens_kl); }}}};

/// The texts that part at a step above `dropped` and have such a KL, as three lists.
struct OrderSample {
  std::vector<double> flips;
  std::vector<double> kl;
  std::vector<double> lengths;
};

/// −1: none. The paper drops the flips at steps up to 1 and up to 3.
constexpr std::array<std::int64_t, 3> dropped_flips{-1, 1, 3};

/// A row of correlations has at least so many.
constexpr std::int64_t fewest_texts = 3;

OrderSample sample_of(const SourceFigures& source, const TextKl& kind, std::int64_t dropped) {
  OrderSample sample;
  for (const PartedText& text : source.parted) {
    const std::optional<double> kl = kind.of(text);
    if (!kl || !std::isfinite(*kl) || text.flip <= static_cast<double>(dropped)) continue;
    sample.flips.push_back(text.flip);
    sample.kl.push_back(*kl);
    sample.lengths.push_back(text.length);
  }
  return sample;
}

std::optional<double> mean_of(const std::vector<double>& numbers) {
  if (numbers.empty()) return {};
  return statistics::moments(numbers).mean;
}

SummaryTable split_table(std::string title) {
  SummaryTable table;
  table.title = std::move(title);
  table.columns = {{"source", "source", "", true},
                   {"kl", "KL of", "", true},
                   {"texts", "texts", "early, late"},
                   {"early", "early", "nats"},
                   {"late", "late", "nats"},
                   {"ratio", "ratio", ""},
                   {"p", "p", ""},
                   {"rank_biserial", "effect", ""}};
  table.notes = {"early: parted at or before the median step; p: Mann–Whitney, of early and late",
                 "effect: rank-biserial correlation, share of pairs in which the early one is "
                 "larger less smaller"};
  return table;
}

Result<bool> add_split(const std::string& name, const TextKl& kind, const OrderSample& sample,
                       SummaryTable& table, Json& result) {
  std::vector<double> ascending = sample.flips;
  std::ranges::sort(ascending);
  const double median = ascending.empty() ? 0 : statistics::sorted_quantile(ascending, 0.5);
  std::vector<double> early;
  std::vector<double> late;
  early.reserve(sample.flips.size());
  late.reserve(sample.flips.size());
  for (std::size_t i = 0; i < sample.flips.size(); ++i) {
    (sample.flips[i] <= median ? early : late).push_back(sample.kl[i]);
  }
  const auto test = statistics::if_it_can_tell(statistics::mann_whitney(early, late));
  if (!test) return test.error();
  const std::optional<statistics::MannWhitney>& u = *test;
  const auto p = u ? std::optional(u->p) : std::nullopt;
  const auto effect = u ? std::optional(u->rank_biserial) : std::nullopt;
  const std::optional<double> early_kl = mean_of(early);
  const std::optional<double> late_kl = mean_of(late);
  std::optional<double> ratio;
  if (early_kl && late_kl && *late_kl > 0) ratio = *early_kl / *late_kl;
  table.rows.push_back({cell(name), cell(kind.name),
                        SummaryCell{fmt::format("{}, {}", early.size(), late.size()),
                                    Json{{"early", early.size()}, {"late", late.size()}}},
                        cell(early_kl), cell(late_kl), cell(ratio), cell(p), cell(effect)});
  result = {{"median_flip", ascending.empty() ? Json(nullptr) : Json(median)},
            {"early_texts", early.size()},
            {"late_texts", late.size()},
            {"early_kl", json_of(early_kl)},
            {"late_kl", json_of(late_kl)},
            {"ratio", json_of(ratio)},
            {"p", json_of(p)},
            {"rank_biserial", json_of(effect)}};
  return true;
}

SummaryTable correlation_table(std::string title) {
  SummaryTable table;
  table.title = std::move(title);
  table.columns = {{"source", "source", "", true},
                   {"kl", "KL of", "", true},
                   {"dropped", "without flips", "", true},
                   {"texts", "texts", ""},
                   {"pearson", "Pearson (95 %)", ""},
                   {"pearson_p", "p", ""},
                   {"spearman", "Spearman", ""},
                   {"spearman_p", "p", ""},
                   {"partial", "partial", ""},
                   {"partial_p", "p", ""}};
  table.notes = {"partial: Pearson's with the text's length held fixed; -: one value throughout",
                 "no row: fewer than three texts"};
  return table;
}

struct FoundCorrelations {
  std::optional<statistics::Correlation> pearson;
  std::optional<statistics::Correlation> spearman;
  std::optional<statistics::Correlation> partial;
};

Result<FoundCorrelations> correlations_of(const OrderSample& sample) {
  FoundCorrelations found;
  auto pearson = statistics::if_it_can_tell(statistics::pearson(sample.flips, sample.kl));
  if (!pearson) return pearson.error();
  auto spearman = statistics::if_it_can_tell(statistics::spearman(sample.flips, sample.kl));
  if (!spearman) return spearman.error();
  const std::array<std::span<const double>, 1> controls{sample.lengths};
  auto partial = statistics::if_it_can_tell(
      statistics::partial_correlation(sample.flips, sample.kl, controls));
  if (!partial) return partial.error();
  found.pearson = *pearson;
  found.spearman = *spearman;
  found.partial = *partial;
  return found;
}

Json json_of_correlation(const std::optional<statistics::Correlation>& found) {
  if (!found) return nullptr;
  return {{"r", json_of(found->r)}, {"p", found->p}, {"pairs", found->pairs}};
}

Result<bool> add_correlation(const std::string& name, const TextKl& kind, std::int64_t dropped,
                             const OrderSample& sample, SummaryTable& table, Json& result) {
  const Result<FoundCorrelations> found = correlations_of(sample);
  if (!found) return found.error();
  const auto r = [](const std::optional<statistics::Correlation>& each) {
    return each ? std::optional(each->r.value) : std::nullopt;
  };
  const auto p = [](const std::optional<statistics::Correlation>& each) {
    return each ? std::optional(each->p) : std::nullopt;
  };
  const std::optional<statistics::Correlation>& pearson = found->pearson;
  if (std::ssize(sample.flips) >= fewest_texts) {
    table.rows.push_back(
        {cell(name), cell(kind.name), cell(dropped < 0 ? "" : fmt::format("up to {}", dropped)),
         cell(std::ssize(sample.flips)), cell(pearson ? std::optional(pearson->r) : std::nullopt),
         cell(p(pearson)), cell(r(found->spearman)), cell(p(found->spearman)),
         cell(r(found->partial)), cell(p(found->partial))});
  }
  result[dropped < 0 ? "all" : fmt::format("without_up_to_{}", dropped)] = {
      {"texts", sample.flips.size()},
      {"pearson", json_of_correlation(found->pearson)},
      {"spearman", json_of_correlation(found->spearman)},
      {"partial", json_of_correlation(found->partial)}};
  return true;
}

struct OrderTables {
  SummaryTable split;
  SummaryTable correlation;
};

Result<bool> add_source(const std::string& name, const SourceFigures& source, OrderTables& own,
                        OrderTables& same, Json& result) {
  for (const TextKl& kind : text_kls) {
    OrderTables& tables = kind.same_tokens ? same : own;
    for (const std::int64_t dropped : dropped_flips) {
      const OrderSample sample = sample_of(source, kind, dropped);
      Result<bool> added = dropped < 0 ? add_split(name, kind, sample, tables.split,
                                                   result[kind.key]["early_and_late"])
                                       : Result<bool>(true);
      if (added) {
        added = add_correlation(name, kind, dropped, sample, tables.correlation,
                                result[kind.key]["correlation"]);
      }
      if (!added) return added;
    }
  }
  return true;
}

}  // namespace

Result<bool> add_order(const BoundaryFigures& figures, StudySummary& summary) {
  OrderTables own{split_table("texts that part early and late: KL, each after its own tokens"),
                  correlation_table("the flip's step against KL, each after its own tokens")};
  OrderTables same{split_table("texts that part early and late: KL after the same tokens"),
                   correlation_table("the flip's step against KL after the same tokens")};
  Json& result = summary.result["order"];
  result = Json::object();
  for (const std::string& name : figures.order) {
    const SourceFigures& source = figures.sources.find(name)->second;
    if (source.parted.empty()) continue;
    const Result<bool> added = add_source(name, source, own, same, result[name]);
    if (!added) return added;
  }
  for (SummaryTable* table : {&own.split, &own.correlation, &same.split, &same.correlation}) {
    if (!table->rows.empty()) summary.tables.push_back(std::move(*table));
  }
  return true;
}

}  // namespace kvsim::experiments
