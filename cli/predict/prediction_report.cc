// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/prediction_report.h"

#include <utility>

#include "cli/predict/cells.h"
#include "cli/predict/tables.h"
#include "softfloat/evidence.h"

namespace kvsim {
namespace {

namespace tables = prediction_tables;

Json list_json(const std::vector<std::int64_t>& numbers) { return Json(numbers); }

Json input_json(const Prediction& prediction, const PredictionRequest& request) {
  const PredictionOptions& options = prediction.options;
  const DecoderShape& decoder = options.decoder;
  Json input = Json::object();
  input["shape"] = request.shape_source.empty() ? Json() : Json(request.shape_source);
  input["query_heads"] = decoder.query_heads;
  input["kv_heads"] = decoder.kv_heads;
  input["head_dim"] = decoder.head_dim;
  input["kv_len"] = options.kv_len;
  input["hidden"] = decoder.hidden;
  input["ffn"] = decoder.ffn;
  input["layers"] = options.layers;
  input["prefix"] = options.prefix;
  input["format"] = request.storage->name;
  input["device"] = options.device->name;
  input["on"] = prediction.attention.on.kernel->name;
  input["off"] = prediction.attention.off.kernel->name;
  input["input"] = request.input_name;
  input["seed"] = options.seed;
  input["trials"] = options.trials;
  input["positions"] = prediction.attention.positions;
  input["rows"] = list_json(options.questions.rows);
  input["cached"] = options.questions.cached;
  input["new"] = options.questions.new_tokens;
  input["chunks"] = list_json(options.questions.chunks);
  input["verify_width"] = list_json(options.questions.verify_widths);
  input["ranks"] = list_json(options.questions.ranks);
  input["margins"] = options.margins.name;
  request.exp->describe(input);
  if (!request.rope.empty()) {
    input["rope"] = request.rope;
    input["setting"] = request.rope_setting;
  }
  input["unused_fields"] = Json(request.unused_fields);
  return input;
}

Json attention_json(const Prediction& prediction) {
  Json out = Json::object();
  out["kernels"] = rows_as_json(tables::attention_sides(prediction));
  out["whole_prefix"] = prediction.attention.whole_prefix;
  out["difference"] = tables::difference_json(prediction.attention.difference);
  out["differing_by_head"] = Json::array();
  for (const VectorDifference& head : prediction.attention.by_head) {
    out["differing_by_head"].push_back(head.differing);
  }
  out["exp_band"] = Json();
  if (prediction.band) {
    const ExponentialBand& band = *prediction.band;
    Json entry = Json::object();
    entry["ulp"] = json_number(band.ulp);
    entry["runs"] = band.runs;
    entry["differing"] = Json::array({band.least_differing, band.most_differing});
    entry["relative_l2"] =
        Json::array({json_number(band.least_relative_l2), json_number(band.most_relative_l2)});
    out["exp_band"] = std::move(entry);
  }
  return out;
}

Json projections_json(const Prediction& prediction) {
  Json out = Json::object();
  out["rows"] = prediction.projections.rows;
  out["launch_rows"] = prediction.projections.launch_rows;
  out["one_row_rule"] = prediction.projections.one_row_rule;
  out["all_rows_rule"] = prediction.projections.all_rows_rule;
  out["k"] = tables::difference_json(prediction.projections.k);
  out["v"] = tables::difference_json(prediction.projections.v);
  return out;
}

Json grouped_json(const Prediction& prediction) {
  Json out = Json::object();
  out["group"] = prediction.grouped.group;
  out["samples"] = prediction.grouped.samples;
  out["errors"] = rows_as_json(tables::grouped_queries(prediction));
  out["repeated_differing"] = prediction.grouped.repeated.differing;
  return out;
}

Json proportion_json(const Proportion& proportion) {
  Json out = Json::object();
  out["value"] = json_number(proportion.value);
  out["low"] = json_number(proportion.low);
  out["high"] = json_number(proportion.high);
  return out;
}

Json flips_json(const Prediction& prediction) {
  const FlipReport& flips = prediction.flips;
  const DifferenceErrors& errors = flips.errors;
  Json out = Json::object();
  out["logit_deviation"] = json_number(flips.logit_deviation);
  out["trials"] = errors.trials;
  out["mean"] = json_number(errors.mean);
  out["deviation"] = json_number(errors.deviation);
  out["median_absolute"] = json_number(errors.median_absolute);
  out["absolute_99"] = json_number(errors.absolute_99);
  out["largest"] = json_number(errors.largest);
  out["largest_upper_95"] = json_number(errors.largest_upper_95);
  out["share_beyond_largest"] = json_number(errors.share_beyond_largest);
  out["rates"] = rows_as_json(tables::flips(prediction));
  out["margins"] = prediction.options.margins.name;
  out["margins_source"] = prediction.options.margins.source;
  out["tokens"] = prediction.options.margins.tokens();
  out["per_thousand"] = proportion_json(flips.per_thousand);
  out["rounded_per_thousand"] = proportion_json(flips.rounded_per_thousand);
  out["single_operator_bound"] =
      flips.single_operator_bound ? json_number(*flips.single_operator_bound) : Json();
  out["exp"] = tables::exp_text(prediction.exp_bounded);
  return out;
}

}  // namespace

Report prediction_report(const Prediction& prediction, const PredictionRequest& request) {
  Report report;
  report.schema = "kvsim.predict/2";
  report.command = "predict";
  report.headline = prediction_headline(prediction);
  report.tables = {tables::settings(prediction, request), tables::attention_sides(prediction),
                   tables::ulp_histogram(prediction), tables::projections(prediction),
                   tables::size_classes(prediction)};
  if (!prediction.shapes.chunks.empty()) report.tables.push_back(tables::chunks(prediction));
  for (const auto make : {tables::grouped_queries, tables::drift, tables::flips, tables::controls,
                          tables::tolerances}) {
    report.tables.push_back(make(prediction));
  }
  const std::string citation = tolerance_citation(prediction, request);
  if (!citation.empty()) report.tables.back().notes.push_back(citation);

  report.input = input_json(prediction, request);
  Json& result = report.result;
  result = Json::object();
  result["meaning"] = report.headline;
  result["exp"] = tables::exp_text(prediction.exp_bounded);
  result["linear_evidence"] = softfloat::to_string(prediction.options.device->evidence);
  result["attention"] = attention_json(prediction);
  result["projections"] = projections_json(prediction);
  result["shapes"] = rows_as_json(tables::size_classes(prediction));
  result["chunks"] = rows_as_json(tables::chunks(prediction));
  result["grouped_queries"] = grouped_json(prediction);
  result["drift"] = rows_as_json(tables::drift(prediction));
  result["drift_exp"] = tables::exp_text(prediction.drift.exp_bounded);
  result["flips"] = flips_json(prediction);
  result["controls"] = rows_as_json(tables::controls(prediction));
  result["controls_passed"] = prediction.controls_passed;
  result["tolerances"] = rows_as_json(tables::tolerances(prediction));
  result["citation"] = citation;
  return report;
}

}  // namespace kvsim
