// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/attention_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/reveal/attention_parts.h"
#include "cli/reveal/parts.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/key_blocks.h"
#include "sim/order.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

constexpr std::size_t listed_kernels = 6;
constexpr std::size_t listed_values = 64;
constexpr std::size_t shown_tree = 400;  // characters

Table findings_table(const gpu::AttentionRevelation& found) {
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "name", "", Align::left}, {"value", "value", "", Align::left}};
  const auto row = [&](std::string name, std::string value) {
    table.rows.push_back({Cell(std::move(name)), Cell(std::move(value))});
  };
  row("KV direction", std::string(to_string(found.blocks.direction())));
  row("block", blocks_text(found));
  row("splits", splits_text(found));
  if (found.merge) row("merge", gpu::merge_text(*found.merge));
  row("rescaled", rescale_text(found));
  const auto& tree = found.classes.front().tree;
  row("order of P·V", order_text(found.classes.front()));
  if (tree) {
    const std::string text = gpu::to_string(*tree);
    row("tree of P·V", text.size() <= shown_tree ? text : text.substr(0, shown_tree) + " …");
    row("tree sha256", gpu::digest(*tree));
  } else {
    row("tree of P·V", "not seen: " + found.classes.front().why_no_tree);
  }
  row("order of q·k", scores_text(found));
  row("order of Σ p", weights_text(found));
  const gpu::AttentionRevealCalls& calls = found.calls;
  row("calls",
      fmt::format("{}: {} for classes, {} for blocks, {} for the tree, {} for q·k, {} for Σ p, "
                  "{} for the check",
                  calls.all(), calls.classes, calls.blocks, calls.tree, calls.scores, calls.weights,
                  calls.check));
  return table;
}

Table kernels_table(const gpu::AttentionRevelation& found) {
  Table table;
  table.title = "kernels of the simulator";
  table.columns = {{"kernel", "kernel", "", Align::left},
                   {"tree", "tree of P·V", "", Align::left},
                   {"outputs", "outputs", "", Align::left}};
  for (const gpu::KernelAgreement& one : found.replay.kernels) {
    if (table.rows.size() == listed_kernels) break;
    table.rows.push_back(
        {Cell(one.kernel), Cell(one.same_tree ? "the same" : "another"), Cell(check_text(one))});
  }
  return table;
}

Table classes_table(const gpu::AttentionRevelation& found) {
  Table table;
  table.title = "outputs that are added otherwise";
  table.columns = {{"rows", "rows", "", Align::left},
                   {"columns", "columns", "", Align::left},
                   {"tree", "tree of P·V", "", Align::left}};
  for (const gpu::RevealedValueSums& sums : found.classes) {
    table.rows.push_back(
        {Cell(runs_text(sums.where.rows)), Cell(runs_text(sums.where.columns)),
         Cell(sums.tree ? gpu::digest(*sums.tree).substr(0, 16) : sums.why_no_tree)});
  }
  table.notes.emplace_back(
      "rows: query · heads of a group + head; columns: K/V head · head_dim "
      "+ element");
  return table;
}

Table failing_table(const gpu::FailingOutput& failing) {
  Table table;
  table.title =
      fmt::format("smallest difference from {}: head {}, query {}, element {}, all other values 0",
                  failing.kernel, failing.head, failing.query, failing.element);
  table.columns = {{"key", "key", "", Align::right}, {"value", "v", "", Align::left}};
  for (std::size_t i = 0; i < std::min(failing.keys.size(), listed_values); ++i) {
    table.rows.push_back(
        {Cell(fmt::to_string(failing.keys[i])), Cell(hex_text(failing.values[i]))});
  }
  if (failing.keys.size() > listed_values) {
    table.notes.push_back(fmt::format("and {} more", failing.keys.size() - listed_values));
  }
  table.notes.push_back(
      fmt::format("seen {}, replayed {}", hex_text(failing.seen), hex_text(failing.replayed)));
  return table;
}

}  // namespace

std::string unexplained_text(const gpu::AttentionRevelation& found) {
  if (found.explained()) return {};
  if (found.replay.kernels.empty()) return "not explained: no kernel of the table has such a layer";
  const gpu::KernelAgreement& nearest = found.replay.kernels.front();
  return fmt::format(
      "not explained: no kernel of the table gives every bit; the nearest is {} ({})",
      nearest.kernel, check_text(nearest));
}

Report attention_sweep_report(const AttentionRevealRequest& request, const SweepRequest& sweep,
                              const std::vector<gpu::AttentionSizes>& classes) {
  Report report;
  report.schema = "kvsim.reveal_attention/1";
  report.command = "reveal";
  report.headline = fmt::format("{}: {} class{} from {} = {} to {}.",
                                gpu::AttentionCalls(*request.backend, request.layer).description(),
                                classes.size(), classes.size() == 1 ? "" : "es", sweep.name,
                                sweep.first, sweep.last);
  Table table;
  table.columns = {{"sizes", sweep.name, "", Align::left},
                   {"walk", "keys", "", Align::left},
                   {"order", "order of P·V", "", Align::left},
                   {"scores", "order of q·k", "", Align::left},
                   {"kernels", "gives every bit", "", Align::left}};
  Json rows = Json::array();
  for (const gpu::AttentionSizes& one : classes) {
    const std::string sizes = one.sizes.first == one.sizes.last
                                  ? fmt::to_string(one.sizes.first)
                                  : fmt::format("{}–{}", one.sizes.first, one.sizes.last);
    gpu::AttentionLayer layer = request.layer;
    if (sweep.name == "m") layer.shape.query_len = one.sizes.first;
    const gpu::RevealedValueSums& last = sums_of_last_query(one.found, layer);
    std::string kernels = fmt::to_string(fmt::join(equal_kernels(one.found), ", "));
    if (kernels.empty()) kernels = "not explained";
    std::string order = order_text(last);
    if (!last.orders.empty() && !one.all_have_order) order += ", or none of the grammar";
    table.rows.push_back({Cell(sizes), Cell(walk_text(one.found)), Cell(std::move(order)),
                          Cell(scores_text(one.found)), Cell(std::move(kernels))});
    Json row = Json::object();
    row["first"] = one.sizes.first;
    row["last"] = one.sizes.last;
    row["all_have_order"] = one.all_have_order;
    row["order_of_last_query"] = last.orders.empty() ? Json() : Json(order_text(last));
    row.update(attention_json(one.found));
    rows.push_back(std::move(row));
  }
  report.tables.push_back(std::move(table));
  report.input = attention_input_json(request);
  report.result = Json{{"sweep", sweep.name},
                       {"sizes", std::move(rows)},
                       {"fingerprint", fingerprint_json(*request.backend)}};
  return report;
}

Report attention_reveal_report(const AttentionRevealRequest& request,
                               const gpu::AttentionRevelation& found,
                               const std::vector<gpu::Dependence>& dependences) {
  Report report;
  report.schema = "kvsim.reveal_attention/1";
  report.command = "reveal";
  const std::vector<std::string> equal = equal_kernels(found);
  report.headline = fmt::format(
      "{}: {}; {}.", gpu::AttentionCalls(*request.backend, request.layer).description(),
      walk_text(found),
      equal.empty() ? "not explained" : fmt::format("{} gives every bit", equal.front()));
  report.tables = {findings_table(found), kernels_table(found)};
  if (found.classes.size() > 1) report.tables.push_back(classes_table(found));
  if (!dependences.empty()) report.tables.push_back(dependences_table(dependences));
  if (found.replay.failing) report.tables.push_back(failing_table(*found.replay.failing));
  report.input = attention_input_json(request);
  report.result = attention_json(found);
  report.result["dependences"] = dependences_json(dependences);
  report.result["fingerprint"] = fingerprint_json(*request.backend);
  return report;
}

}  // namespace kvsim
