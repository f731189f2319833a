// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/predict/kernel_choice.h"
#include "sim/predict/logit_changes.h"
#include "sim/predict/prediction_parts.h"

namespace kvsim {
namespace {

// Margins, in logits, at which the chance of a flip is told.
constexpr std::array margins_told{0.01, 0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0};

// Pairs of tokens for which the output matrix's running bound is taken.
constexpr std::int64_t bounded_pairs = 32;

/// Shares of the work that the parts have, as measured on the default shape.
constexpr double share_before_drift = 0.35;
constexpr double share_of_drift = 0.6;

Result<FlipReport> flip_report(const PredictionOptions& options, const KernelChoice& kernels,
                               const DecoderReport& drift) {
  FlipReport report;
  report.logit_deviation = logit_deviation(options.margins.top_logit, options.margins.vocabulary);
  LogitOptions logits;
  logits.storage = options.storage;
  logits.norm_epsilon = static_cast<float>(options.decoder.norm_epsilon);
  logits.logit_deviation = report.logit_deviation;
  logits.trials = options.trials;
  logits.seed = options.seed;
  logits.engine = options.engine;
  const auto changes = logit_changes(logits, drift.on_state, drift.off_state);
  if (!changes) return changes.error();
  report.errors = summarize_changes(*changes);
  const LogitGrid plain;
  const LogitGrid rounded{true, options.storage, options.margins.top_logit, options.seed};
  for (const double margin : margins_told) {
    report.rates.push_back(flip_rate(*changes, margin, plain));
    report.rounded_rates.push_back(flip_rate(*changes, margin, rounded));
  }
  report.per_thousand = flips_per_thousand(*changes, options.margins.bins, plain);
  report.rounded_per_thousand = flips_per_thousand(*changes, options.margins.bins, rounded);
  const std::int64_t tokens = options.prefix + 1;
  const SingleOperator matrix{&kernels.linear(1),
                              &kernels.linear(tokens),
                              1,
                              tokens,
                              options.decoder.vocabulary,
                              kernels.multiprocessors,
                              std::min(options.trials, bounded_pairs)};
  const auto bound = single_operator_bound(logits, matrix, drift.off_state);
  if (!bound) return bound.error();
  report.single_operator_bound = *bound;
  return report;
}

DecoderOptions decoder_options(const PredictionOptions& options) {
  DecoderOptions decoder;
  decoder.shape = options.decoder;
  decoder.storage = options.storage;
  decoder.on = options.device;
  decoder.off = options.device;
  decoder.prefix = options.prefix;
  decoder.layers = options.layers;
  decoder.seed = options.seed;
  decoder.rope_source = options.rope_source;
  decoder.attention.exp = options.exp;
  decoder.attention.engine = options.engine;
  decoder.engine = options.engine;
  if (options.progress) {
    decoder.progress = [&options](double share) {
      options.progress(share_before_drift + share_of_drift * share);
    };
  }
  return decoder;
}

/// The controls of the layer, and the one that grouped queries have.
Result<std::vector<ControlResult>> all_controls(const AttentionPart& part,
                                                const Prediction& so_far) {
  auto controls = run_controls(part.options, so_far.attention, part.numbers);
  if (!controls) return controls;
  const VectorDifference& repeated = so_far.grouped.repeated;
  controls->push_back({"grouped queries",
                       "the decode kernel with K and V repeated for each query "
                       "head",
                       repeated.elements, repeated.differing, repeated.relative_l2, true});
  return controls;
}

Result<bool> before_drift(const PredictionOptions& options, const KernelChoice& kernels,
                          const AttentionPart& part, Prediction& prediction) {
  auto attention = compare_attention(part.options, part.numbers);
  if (!attention) return attention.error();
  prediction.attention = std::move(*attention);
  if (options.exp_ulp > 0) {
    auto band = exponential_band(options, part, prediction.attention);
    if (!band) return band.error();
    prediction.band = *band;
  }
  auto projections = project(options, kernels);
  if (!projections) return projections.error();
  prediction.projections = std::move(*projections);
  auto shapes = answer_questions(options, kernels);
  if (!shapes) return shapes.error();
  prediction.shapes = std::move(*shapes);
  auto grouped = group_queries(options, part);
  if (!grouped) return grouped.error();
  prediction.grouped = std::move(*grouped);
  auto controls = all_controls(part, prediction);
  if (!controls) return controls.error();
  prediction.controls = std::move(*controls);
  return true;
}

}  // namespace

Result<Prediction> predict(const PredictionOptions& options) {
  // What comes late in the work is checked before any of it.
  if (auto fits = check_decoder(decoder_options(options)); !fits) return fits.error();
  const auto kernels = choose_kernels(*options.device, options.on, options.off);
  if (!kernels) return kernels.error();
  const AttentionPart part = make_attention_part(options, *kernels);
  Prediction prediction;
  prediction.options = options;
  prediction.options.progress = nullptr;
  prediction.options.captured = nullptr;
  if (auto done = before_drift(options, *kernels, part, prediction); !done) return done.error();
  if (options.progress) options.progress(share_before_drift);

  DecoderOptions decoder = decoder_options(options);
  decoder.decode_attention = kernels->attention(1).name;
  decoder.prefill_attention = kernels->attention(2).name;
  auto drift = run_decoder(decoder);
  if (!drift) return drift.error();
  prediction.drift = std::move(*drift);
  auto flips = flip_report(options, *kernels, prediction.drift);
  if (!flips) return flips.error();
  prediction.flips = std::move(*flips);
  prediction.tolerances = make_tolerances(prediction);
  prediction.exp_bounded = prediction.attention.on.exp_bounded ||
                           prediction.attention.off.exp_bounded || prediction.drift.exp_bounded;
  prediction.controls_passed =
      std::all_of(prediction.controls.begin(), prediction.controls.end(),
                  [](const ControlResult& control) { return control.passed(); });
  return prediction;
}

}  // namespace kvsim
