// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/attention_parts.h"

#include <fmt/format.h>

#include <cstdint>

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

bool walks(const gpu::AttentionRevelation& found) {
  return found.blocks.direction() != KeyDirection::not_seen;
}

Json failing_json(const gpu::FailingOutput& failing) {
  Json out = Json::object();
  out["kernel"] = failing.kernel;
  out["head"] = failing.head;
  out["query"] = failing.query;
  out["element"] = failing.element;
  out["seen"] = hex_text(failing.seen);
  out["replayed"] = hex_text(failing.replayed);
  out["values"] = Json::array();
  for (std::size_t i = 0; i < failing.keys.size(); ++i) {
    out["values"].push_back(Json{{"key", failing.keys[i]}, {"value", hex_text(failing.values[i])}});
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

/// An order with its tree.
template <class Orders>
void add_order(const Orders& orders, const gpu::AdditionTree& tree, Json& out) {
  out["order"] = orders.empty() ? Json() : Json(to_string(orders.front()));
  out["tree"] = gpu::to_string(tree);
  out["tree_sha256"] = gpu::digest(tree);
}

Json scores_json(const gpu::ScoreFindings& scores) {
  Json classes = Json::array();
  for (const gpu::RevealedScores& one : scores.classes) {
    Json row = Json::object();
    row["keys"] = runs_text(one.keys);
    add_order(one.orders, one.tree, row);
    classes.push_back(std::move(row));
  }
  return Json{{"classes", std::move(classes)},
              {"why_not", scores.why_not.empty() ? Json() : Json(scores.why_not)}};
}

Json weights_json(const gpu::WeightFindings& weights) {
  Json out = Json::object();
  if (const auto& tree = weights.tree) {
    add_order(weights.orders, *tree, out);
  } else {
    for (const char* const name : {"order", "tree", "tree_sha256"}) out[name] = Json();
  }
  out["why_not"] = weights.why_not.empty() ? Json() : Json(weights.why_not);
  return out;
}

}  // namespace

std::string walk_text(const gpu::AttentionRevelation& found) {
  std::string text = walks(found) ? fmt::format("KV blocks of {}, {}", found.blocks.block_size(),
                                                to_string(found.blocks.direction()))
                                  : std::string("no walk over blocks of keys seen");
  if (found.blocks.splits() > 1) text += fmt::format(", {} splits", found.blocks.splits());
  if (found.rescale != RescaleRule::not_seen) {
    text += fmt::format(", rescaled {}", to_string(found.rescale));
  }
  return text;
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

std::string order_text(const gpu::RevealedValueSums& sums) {
  return sums.orders.empty() ? "none of the grammar" : to_string(sums.orders.front());
}

std::string scores_text(const gpu::AttentionRevelation& found) {
  const gpu::ScoreFindings& scores = found.scores;
  if (scores.classes.empty()) return "not revealed: " + scores.why_not;
  std::string text;
  for (const gpu::RevealedScores& one : scores.classes) {
    const std::string order =
        one.orders.empty() ? "none of the grammar" : to_string(one.orders.front());
    if (scores.classes.size() == 1) return order;
    text += fmt::format("{}{} (keys {})", text.empty() ? "" : "; ", order, runs_text(one.keys));
  }
  return text;
}

std::string weights_text(const gpu::AttentionRevelation& found) {
  const gpu::WeightFindings& weights = found.weights;
  if (!weights.tree) return "not revealed: " + weights.why_not;
  return weights.orders.empty() ? "none of the grammar" : to_string(weights.orders.front());
}

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

std::string hex_text(float value) {
  return softfloat::to_hex_float(softfloat::binary32, softfloat::from_float(value));
}

Json attention_input_json(const AttentionRevealRequest& request) {
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
  out["sweep"] = request.sweep ? Json(request.sweep->text) : Json();
  return out;
}

Json attention_json(const gpu::AttentionRevelation& found) {
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
  out["order"] = has_order ? Json(order_text(found.classes.front())) : Json();
  out["tree_sha256"] = tree ? Json(gpu::digest(*tree)) : Json();
  out["scores"] = scores_json(found.scores);
  out["weights"] = weights_json(found.weights);
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
  out["calls"] = Json{{"all", found.calls.all()},     {"classes", found.calls.classes},
                      {"blocks", found.calls.blocks}, {"tree", found.calls.tree},
                      {"scores", found.calls.scores}, {"weights", found.calls.weights},
                      {"check", found.calls.check}};
  return out;
}

}  // namespace kvsim
