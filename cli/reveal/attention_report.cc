// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/attention_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/reveal/parts.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/key_blocks.h"
#include "sim/order.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using gpu::KeyBlock;
using gpu::KeyDirection;
using gpu::RescaleRule;

constexpr std::size_t listed_kernels = 6;
constexpr std::size_t listed_values = 64;
constexpr std::size_t shown_tree = 400;  // characters

bool walks(const gpu::AttentionRevelation& found) {
  return found.blocks.direction() != KeyDirection::not_seen;
}

std::string rescale_text(const gpu::AttentionRevelation& found) {
  std::string text(to_string(found.rescale));
  if (found.rescale == RescaleRule::beyond_rise) {
    text += fmt::format(": by 2^{:.3f}, not by 2^{:.3f}", found.smallest_rescaled_rise,
                        found.largest_kept_rise);
  }
  return text;
}

std::string blocks_text(const gpu::AttentionRevelation& found) {
  const gpu::KeyBlocks& blocks = found.blocks;
  if (!walks(found)) return "not seen";
  std::string text = fmt::format("{} keys", blocks.block_size());
  if (!blocks.is_uniform()) text += ", not all alike";
  return text;
}

std::string splits_text(const gpu::AttentionRevelation& found) {
  if (found.blocks.splits() == 1) return "none seen";
  std::string text;
  for (std::int64_t split = 0; split < found.blocks.splits(); ++split) {
    if (split == 8) return text + ", …";
    text += fmt::format("{}{}", text.empty() ? "keys " : ", ",
                        runs_text(found.blocks.keys_of_split(split)));
  }
  return fmt::format("{}: {}", found.blocks.splits(), text);
}

/// The order of P·V in the grammar, where it has one.
std::string order_text(const gpu::AttentionRevelation& found) {
  const std::vector<Order>& orders = found.classes.front().orders;
  return orders.empty() ? "none of the grammar" : to_string(orders.front());
}

/// The kernels that gave every output.
std::vector<std::string> equal_kernels(const gpu::AttentionRevelation& found) {
  std::vector<std::string> names;
  for (const gpu::KernelAgreement& one : found.replay.kernels) {
    if (one.compared > 0 && one.different == 0) names.push_back(one.kernel);
  }
  return names;
}

std::string check_text(const gpu::KernelAgreement& one) {
  return one.different == 0 ? fmt::format("{} equal", one.compared)
                            : fmt::format("{} of {} differ", one.different, one.compared);
}

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
  row("order of P·V", order_text(found));
  if (tree) {
    const std::string text = gpu::to_string(*tree);
    row("tree of P·V", text.size() <= shown_tree ? text : text.substr(0, shown_tree) + " …");
    row("tree sha256", gpu::digest(*tree));
  } else {
    row("tree of P·V", "not seen: " + found.classes.front().why_no_tree);
  }
  const gpu::AttentionRevealCalls& calls = found.calls;
  row("calls", fmt::format("{}: {} for classes, {} for blocks, {} for the tree, {} for the check",
                           calls.all(), calls.classes, calls.blocks, calls.tree, calls.check));
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

std::string hex(float value) {
  return softfloat::to_hex_float(softfloat::binary32, softfloat::from_float(value));
}

Table failing_table(const gpu::FailingOutput& failing) {
  Table table;
  table.title =
      fmt::format("smallest difference from {}: head {}, query {}, element {}, all other values 0",
                  failing.kernel, failing.head, failing.query, failing.element);
  table.columns = {{"key", "key", "", Align::right}, {"value", "v", "", Align::left}};
  for (std::size_t i = 0; i < std::min(failing.keys.size(), listed_values); ++i) {
    table.rows.push_back({Cell(fmt::to_string(failing.keys[i])), Cell(hex(failing.values[i]))});
  }
  if (failing.keys.size() > listed_values) {
    table.notes.push_back(fmt::format("and {} more", failing.keys.size() - listed_values));
  }
  table.notes.push_back(
      fmt::format("seen {}, replayed {}", hex(failing.seen), hex(failing.replayed)));
  return table;
}

Json failing_json(const gpu::FailingOutput& failing) {
  Json out = Json::object();
  out["kernel"] = failing.kernel;
  out["head"] = failing.head;
  out["query"] = failing.query;
  out["element"] = failing.element;
  out["seen"] = hex(failing.seen);
  out["replayed"] = hex(failing.replayed);
  out["values"] = Json::array();
  for (std::size_t i = 0; i < failing.keys.size(); ++i) {
    out["values"].push_back(Json{{"key", failing.keys[i]}, {"value", hex(failing.values[i])}});
  }
  return out;
}

Json class_json(const gpu::RevealedValueSums& sums) {
  Json out = Json::object();
  out["rows"] = runs_text(sums.where.rows);
  out["columns"] = runs_text(sums.where.columns);
  out["outputs"] = sums.where.rows.size() * sums.where.columns.size();
  out["tree"] = sums.tree ? Json(gpu::to_string(*sums.tree)) : Json();
  out["tree_sha256"] = sums.tree ? Json(gpu::digest(*sums.tree)) : Json();
  out["why_no_tree"] = sums.tree ? Json() : Json(sums.why_no_tree);
  return out;
}

Json input_json(const AttentionRevealRequest& request) {
  const AttentionShape& shape = request.layer.shape;
  Json out = Json::object();
  out["backend"] = request.backend->name();
  out["operation"] = "sdpa";
  out["heads"] = shape.query_heads;
  out["kv_heads"] = shape.kv_heads;
  out["head_dim"] = shape.head_dim;
  out["kv_len"] = shape.kv_len;
  out["q_len"] = shape.query_len;
  out["dtype"] = std::string(softfloat::format_name(request.layer.format));
  out["threads"] = request.threads;
  out["attributes"] = Json::object();
  for (const auto& [key, value] : request.layer.attributes) out["attributes"][key] = value;
  out["seed"] = request.options.seed;
  return out;
}

Json result_json(const gpu::AttentionRevelation& found) {
  Json out = Json::object();
  out["direction"] = std::string(to_string(found.blocks.direction()));
  out["block"] = walks(found) ? Json(found.blocks.block_size()) : Json();
  out["splits"] = found.blocks.splits();
  out["merge"] = found.merge ? Json(gpu::merge_text(*found.merge)) : Json();
  out["rescale"] = std::string(to_string(found.rescale));
  const bool threshold = found.rescale == RescaleRule::beyond_rise;
  out["largest_rise_kept"] = threshold ? json_number(found.largest_kept_rise) : Json();
  out["smallest_rise_rescaled"] = threshold ? json_number(found.smallest_rescaled_rise) : Json();
  const auto& tree = found.classes.front().tree;
  const bool has_order = !found.classes.front().orders.empty();
  out["order"] = has_order ? Json(order_text(found)) : Json();
  out["tree_sha256"] = tree ? Json(gpu::digest(*tree)) : Json();
  out["explained"] = found.explained();
  out["kernels"] = Json::array();
  for (const gpu::KernelAgreement& one : found.replay.kernels) {
    out["kernels"].push_back(Json{{"kernel", one.kernel},
                                  {"same_tree", one.same_tree},
                                  {"compared", one.compared},
                                  {"different", one.different}});
  }
  out["failing"] = found.replay.failing ? failing_json(*found.replay.failing) : Json();
  out["blocks"] = Json::array();
  for (const KeyBlock& block : found.blocks.blocks) {
    out["blocks"].push_back(Json{{"begin", block.begin},
                                 {"end", block.end},
                                 {"split", block.split},
                                 {"position", block.position}});
  }
  out["classes"] = Json::array();
  for (const gpu::RevealedValueSums& sums : found.classes) {
    out["classes"].push_back(class_json(sums));
  }
  out["calls"] = Json{{"all", found.calls.all()},
                      {"classes", found.calls.classes},
                      {"blocks", found.calls.blocks},
                      {"tree", found.calls.tree},
                      {"check", found.calls.check}};
  return out;
}

/// "KV blocks of 512, first to last, one split, rescaled whenever the maximum rises".
std::string words(const gpu::AttentionRevelation& found) {
  std::string text = walks(found) ? fmt::format("KV blocks of {}, {}", found.blocks.block_size(),
                                                to_string(found.blocks.direction()))
                                  : std::string("no walk over blocks of keys seen");
  if (found.blocks.splits() > 1) text += fmt::format(", {} splits", found.blocks.splits());
  if (found.rescale != RescaleRule::not_seen) {
    text += fmt::format(", rescaled {}", to_string(found.rescale));
  }
  return text;
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

Report attention_reveal_report(const AttentionRevealRequest& request,
                               const gpu::AttentionRevelation& found,
                               const std::vector<gpu::Dependence>& dependences) {
  Report report;
  report.schema = "kvsim.reveal_attention/1";
  report.command = "reveal";
  const std::vector<std::string> equal = equal_kernels(found);
  report.headline = fmt::format(
      "{}: {}; {}.", gpu::AttentionCalls(*request.backend, request.layer).description(),
      words(found),
      equal.empty() ? "not explained" : fmt::format("{} gives every bit", equal.front()));
  report.tables = {findings_table(found), kernels_table(found)};
  if (found.classes.size() > 1) report.tables.push_back(classes_table(found));
  if (!dependences.empty()) report.tables.push_back(dependences_table(dependences));
  if (found.replay.failing) report.tables.push_back(failing_table(*found.replay.failing));
  report.input = input_json(request);
  report.result = result_json(found);
  report.result["dependences"] = dependences_json(dependences);
  report.result["fingerprint"] = fingerprint_json(*request.backend);
  return report;
}

}  // namespace kvsim
