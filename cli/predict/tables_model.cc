// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Settings, and parts 5 to 8: the model.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "cli/predict/cells.h"
#include "cli/predict/tables.h"
#include "cli/printable.h"
#include "sim/dispatch.h"
#include "sim/linear.h"
#include "softfloat/evidence.h"

namespace kvsim::prediction_tables {
namespace {

std::string side_text(const AttentionSide& side) {
  return fmt::format("{} ({}; {}, {})", side.kernel->name,
                     softfloat::to_string(side.kernel->evidence), side.kernel->source,
                     side.kernel->date);
}

/// "2 to 64 rows".
std::string rows_words(const SizeRange& range) {
  if (range.most == std::numeric_limits<std::int64_t>::max()) {
    return range.least == 1 ? "any rows" : fmt::format("{} rows or more", range.least);
  }
  if (range.least == range.most) return counted(range.least, "row", "rows");
  return fmt::format("{} to {} rows", range.least, range.most);
}

std::string linear_text(const LinearKernel& kernel) {
  return fmt::format("{} ({}; {})", kernel.name, softfloat::to_string(kernel.evidence),
                     kernel.source);
}

/// A margin's line of both kinds of logits.
std::vector<Cell> rate_cells(const FlipRate& rate, const FlipRate& rounded) {
  const auto band = [](const Proportion& probability) {
    return Cell(
        fmt::format("{} to {}", percent_text(probability.low), percent_text(probability.high)),
        Json::array({json_number(probability.low), json_number(probability.high)}));
  };
  return {{fmt::format("{}", rate.margin), json_number(rate.margin)},
          percentage(rate.probability.value),
          band(rate.probability),
          percentage(rate.normal_model),
          percentage(rounded.probability.value),
          band(rounded.probability)};
}

std::string per_thousand_text(const Proportion& flips) {
  return fmt::format("{} ({} to {})", short_text(flips.value), short_text(flips.low),
                     short_text(flips.high));
}

}  // namespace

Table settings(const Prediction& prediction, const PredictionRequest& request) {
  const PredictionOptions& options = prediction.options;
  const DecoderShape& decoder = options.decoder;
  Table table;
  table.show_headings = false;
  table.columns = {left_column("setting", "setting"), left_column("value", "value")};
  const auto add = [&](std::string name, std::string value) {
    table.rows.push_back({Cell(std::move(name)), Cell(std::move(value))});
  };
  if (!request.shape_source.empty()) add("shape of", request.shape_source);
  add("attention", fmt::format("{} on {}, head_dim {}, {}",
                               counted(decoder.query_heads, "query head", "query heads"),
                               counted(decoder.kv_heads, "K/V head", "K/V heads"), decoder.head_dim,
                               counted(options.kv_len, "key", "keys")));
  add("decoder", fmt::format("hidden {}, ffn {}, {} of {} layers, prefix {}", decoder.hidden,
                             decoder.ffn, options.layers == 0 ? decoder.layers : options.layers,
                             decoder.layers, options.prefix));
  add("device",
      fmt::format("{}: {} (choice of kernels: {})", options.device->name,
                  options.device->description, softfloat::to_string(options.device->evidence)));
  add("cache-on", "one query against the cache: " + side_text(prediction.attention.on));
  add("cache-off", "the whole sequence at once: " + side_text(prediction.attention.off));
  for (const LinearChoice& choice : options.device->linear) {
    const LinearKernel* const kernel =
        choice.own != nullptr ? choice.own : find_linear_kernel(choice.kernel);
    if (kernel != nullptr) add("linear, " + rows_words(choice.rows), linear_text(*kernel));
  }
  add("storage", std::string(request.storage->name));
  add("inputs", request.input_source);
  if (!request.rope.empty()) {
    add("RoPE factors",
        fmt::format("{}'s, setting {}, in the decoder", request.rope, request.rope_setting));
  }
  add("exp", prediction.exp_bounded
                 ? "bounded: stands for ex2.approx, whose results are known within 2 ulp; bits of "
                   "real hardware need --exp-table"
                 : "exact");
  if (!request.unused_fields.empty()) {
    std::string fields;
    for (const std::string& field : request.unused_fields) {
      fields += (fields.empty() ? "" : ", ") + printable(field);
    }
    add("not used", fields);
  }
  return table;
}

Table drift(const Prediction& prediction) {
  Table table;
  table.title =
      "5 Drift of the last token's hidden state, layer by layer: cache-on against cache-off, and "
      "each source of error alone";
  table.columns = {right_column("layer", "layer"),
                   right_column("share", "differing"),
                   right_column("l2", "L2"),
                   right_column("relative_l2", "rel L2"),
                   right_column("one_minus_cosine", "1-cosine"),
                   right_column("max_ulp", "max", "ulp"),
                   right_column("on_accumulation", "sums, on"),
                   right_column("off_accumulation", "sums, off"),
                   right_column("storage", "storage"),
                   right_column("on_total", "both, on")};
  for (const LayerDrift& layer : prediction.drift.layers) {
    const VectorDifference& on_off = layer.on_off;
    table.rows.push_back({count(layer.layer), percentage(on_off.share()), figure(on_off.l2),
                          figure(on_off.relative_l2), figure(1 - on_off.cosine),
                          count(on_off.max_ulp), figure(layer.on_accumulation.relative_l2),
                          figure(layer.off_accumulation.relative_l2),
                          figure(layer.storage.relative_l2), figure(layer.on_total.relative_l2)});
  }
  table.notes.emplace_back(
      "sums: rel L2 of cache-on and cache-off from exact operators with the same storage; storage: "
      "of those from binary64; both: of cache-on from binary64");
  return table;
}

Table flips(const Prediction& prediction) {
  const FlipReport& flips = prediction.flips;
  const MarginHistogram& margins = prediction.options.margins;
  Table table;
  table.title =
      "6 Chance that the greedy token flips, by its margin, the largest logit less the second:";
  table.columns = {right_column("margin", "margin", "logits"),
                   right_column("probability", "float32 logits"),
                   right_column("band", "95 % band"),
                   right_column("normal_model", "normal model"),
                   right_column("rounded_probability", "stored logits"),
                   right_column("rounded_band", "95 % band")};
  for (std::size_t i = 0; i < flips.rates.size(); ++i) {
    table.rows.push_back(rate_cells(flips.rates[i], flips.rounded_rates[i]));
  }
  const DifferenceErrors& errors = flips.errors;
  table.notes.push_back(fmt::format(
      "change of the difference of two logits, {} pairs of tokens: rms {}, median {}, 99 % below "
      "{}, largest {}; the largest of so many normal changes stays below {} (95 %); "
      "stored logits: rounded to the storage format",
      errors.trials, short_text(errors.deviation), short_text(errors.median_absolute),
      short_text(errors.absolute_99), short_text(errors.largest),
      short_text(errors.largest_upper_95)));
  table.notes.push_back(
      fmt::format("expected flips in 1,000 tokens with the margins of {} ({} tokens): {} with "
                  "float32 logits, {} "
                  "with logits in storage format",
                  margins.name, margins.tokens(), per_thousand_text(flips.per_thousand),
                  per_thousand_text(flips.rounded_per_thousand)));
  table.notes.push_back(fmt::format(
      "logits: a random output matrix, scaled so that the largest of {} logits is {}, the median "
      "there; the drift is that of one token of a random decoder",
      margins.vocabulary, short_text(margins.top_logit)));
  if (flips.single_operator_bound) {
    table.notes.push_back(fmt::format(
        "the output matrix alone, both kernels on one hidden state: the difference of two logits "
        "moves by at most {} before it is rounded (running bound): a larger margin cannot flip by "
        "that operator",
        figure_text(*flips.single_operator_bound)));
  } else {
    table.notes.emplace_back(
        "the output matrix alone: no running bound is known for the orders of these kernels, so "
        "nothing is said of margins that cannot flip");
  }
  return table;
}

Table controls(const Prediction& prediction) {
  Table table;
  table.title = "7 Controls on the attention layer:";
  table.columns = {left_column("control", "control"),        right_column("differing", "differing"),
                   right_column("elements", "of"),           right_column("relative_l2", "rel L2"),
                   left_column("must_be_zero", "must be 0"), left_column("passed", "passed"),
                   left_column("meaning", "meaning")};
  for (const ControlResult& control : prediction.controls) {
    table.rows.push_back({Cell(control.name),
                          count(control.differing),
                          count(control.elements),
                          figure(control.relative_l2),
                          {control.must_be_zero ? "yes" : "no", Json(control.must_be_zero)},
                          {control.passed() ? "yes" : "NO", Json(control.passed())},
                          Cell(control.meaning)});
  }
  return table;
}

Table tolerances(const Prediction& prediction) {
  Table table;
  table.title = "8 A tolerance for tests, |a - b| <= atol + rtol·|b|:";
  table.columns = {left_column("what", "compared"),      right_column("terms", "K"),
                   right_column("keys", "keys"),         right_column("layers", "layers"),
                   right_column("elements", "elements"), right_column("root_mean_square", "rms"),
                   right_column("largest", "seen"),      right_column("atol", "atol"),
                   right_column("rtol", "rtol")};
  const auto or_nothing = [](std::int64_t value) { return value == 0 ? nothing() : count(value); };
  const auto number = [](double value) { return Cell(short_text(value), json_number(value)); };
  for (const ToleranceLine& line : prediction.tolerances) {
    table.rows.push_back({Cell(line.what), or_nothing(line.terms), or_nothing(line.keys),
                          or_nothing(line.layers), count(line.elements),
                          number(line.root_mean_square), number(line.largest),
                          number(line.tolerance.absolute), number(line.tolerance.relative)});
  }
  return table;
}

}  // namespace kvsim::prediction_tables
