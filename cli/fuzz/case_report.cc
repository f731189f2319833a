// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/case_report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "fuzz/flip/objective.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using fuzz::CaseKind;
using fuzz::CaseShape;
using fuzz::FlipScore;
using fuzz::FlipScorer;

Cell cell(double value) { return {number(value), json_number(value)}; }

std::string format_text(const softfloat::Format& format) {
  return std::string(softfloat::format_name(format));
}

std::string shape_text(const CaseShape& shape) {
  if (shape.kind == CaseKind::sum) {
    return fmt::format("two dot products of {} terms, {} products in {}", shape.terms,
                       to_string(shape.product), format_text(shape.accumulator));
  }
  return fmt::format("{} query heads on {} K/V heads, head_dim {}, {} keys",
                     shape.attention.query_heads, shape.attention.kv_heads,
                     shape.attention.head_dim, shape.attention.kv_len);
}

/// "token 0", or what takes its place.
std::string token_text(int token) {
  return token < 0 ? std::string("no finite number") : fmt::format("token {}", token);
}

}  // namespace

/// A NaN without its sign, which means nothing.
std::string number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
}
std::string ratio(double value) { return fmt::format("{:.3g}", value); }

Json shape_json(const CaseShape& shape, const FlipScorer& scorer) {
  Json out = Json::object();
  out["target"] = std::string(to_string(shape.target));
  out["kind"] = shape.kind == CaseKind::sum ? "sum" : "attention";
  out["storage"] = format_text(shape.storage);
  if (shape.kind == CaseKind::sum) {
    out["terms"] = shape.terms;
    out["accumulate"] = format_text(shape.accumulator);
    out["product"] = std::string(to_string(shape.product));
  } else {
    out["query_heads"] = shape.attention.query_heads;
    out["kv_heads"] = shape.attention.kv_heads;
    out["head_dim"] = shape.attention.head_dim;
    out["kv_len"] = shape.attention.kv_len;
  }
  out["on"] = scorer.path_name(fuzz::path_on);
  out["off"] = scorer.path_name(fuzz::path_off);
  return out;
}

/// What the two paths are called.
std::string_view path_label(const CaseShape& shape, std::size_t path) {
  if (shape.kind == CaseKind::sum) return path == fuzz::path_on ? "on" : "off";
  return path == fuzz::path_on ? "cache-on" : "cache-off";
}

/// "cache-on chooses token 0, cache-off token 1"
std::string choice_text(const CaseShape& shape, const std::array<int, 2>& tokens) {
  if (tokens[fuzz::path_on] == tokens[fuzz::path_off]) {
    return fmt::format("both paths choose {}", token_text(tokens[fuzz::path_on]));
  }
  return fmt::format("{} chooses {}, {} {}", path_label(shape, fuzz::path_on),
                     token_text(tokens[fuzz::path_on]), path_label(shape, fuzz::path_off),
                     token_text(tokens[fuzz::path_off]));
}

std::string claim_text(std::string_view text, const CaseShape& shape, const FlipScore& score,
                       const fuzz::Confirmation& confirmation, const fuzz::Claim& claim) {
  std::string filled = fmt::format(
      fmt::runtime(text), fmt::arg("on", path_label(shape, fuzz::path_on)),
      fmt::arg("off", path_label(shape, fuzz::path_off)),
      fmt::arg("path", path_label(shape, claim.path)),
      fmt::arg("choice", choice_text(shape, confirmation.tokens)),
      fmt::arg("value", ratio(claim.value)), fmt::arg("margin", number(confirmation.margin())),
      fmt::arg("apart", number(score.apart())));
  return claim.value > fuzz::objective(shape.target).largest_value
             ? "A defect of kvsim, please report the case. " + filled
             : filled;
}

Table settings_table(const CaseShape& shape, const FlipScorer& scorer) {
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  table.rows = {{"case", shape_text(shape)},
                {"storage", format_text(shape.storage)},
                {path_label(shape, fuzz::path_on), scorer.path_name(fuzz::path_on)},
                {path_label(shape, fuzz::path_off), scorer.path_name(fuzz::path_off)}};
  return table;
}

/// Both paths beside the exact result.
Table paths_table(const CaseShape& shape, const FlipScore& score) {
  Table table;
  table.columns = {{"path", "path", "", Align::left},
                   {"difference", "token 0 - token 1", "logits", Align::right},
                   {"error", "error", "logits", Align::right},
                   {"bound", "bound", "logits", Align::right},
                   {"token", "token", "", Align::right}};
  table.rows.push_back({"exact", cell(score.exact), cell(0), cell(score.reference_error),
                        Cell(score.exact >= 0 ? "0" : "1", Json(score.exact >= 0 ? 0 : 1))});
  for (const std::size_t path : {fuzz::path_on, fuzz::path_off}) {
    const fuzz::PathScore& one = score.paths[path];
    table.rows.push_back({path_label(shape, path), cell(one.difference),
                          cell(one.difference - score.exact), cell(one.bound),
                          std::isfinite(one.difference)
                              ? Cell(fmt::to_string(one.token()), Json(one.token()))
                              : Cell("-", Json())});
  }
  table.notes = {
      "error: from the exact difference, which is known within its bound; bound: what rounding can "
      "do to this input on that path, rigorously"};
  return table;
}

void add_score(Json& result, const FlipScore& score, const fuzz::Confirmation& confirmation) {
  result["margin"] = json_number(confirmation.margin());
  result["apart"] = json_number(score.apart());
  result["bound"] = json_number(score.bound());
  result["bound_ratio"] = json_number(confirmation.margin() / score.bound());
}

}  // namespace kvsim
