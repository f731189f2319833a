// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/decoder.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch.h"
#include "sim/exp_models.h"
#include "sim/inputs.h"
#include "sim/predict/attention_pair.h"
#include "sim/predict/controls.h"
#include "sim/predict/flips.h"
#include "sim/predict/grouped_queries.h"
#include "sim/predict/margins.h"
#include "sim/predict/projections.h"
#include "sim/predict/shapes.h"
#include "sim/predict/tolerance.h"
#include "softfloat/result.h"

/// All parts of predict for one architecture: how far cache-on and cache-off are apart, why, and
/// which tokens that can flip.
namespace kvsim {

struct PredictionOptions {
  const Dispatch* device = nullptr;  ///< required; one with kernels
  std::string on = "decode";         ///< attention kernel of cache-on, as choose_kernels() takes it
  std::string off = "prefill";       ///< and of cache-off
  DecoderShape decoder;
  softfloat::Format storage;
  InputKind input = InputKind::gaussian;
  std::int64_t kv_len = 512;
  std::int64_t prefix = 16;    ///< tokens before the last one, in the decoder
  std::int64_t layers = 0;     ///< of the decoder that are run; 0: all
  std::int64_t trials = 2000;  ///< pairs of tokens whose logits are looked at
  std::int64_t positions = 4;  ///< queries of the attention layer that are compared
  ShapeQuestions questions;
  MarginHistogram margins;
  std::uint64_t seed = 1;
  const AttentionNumbers* captured = nullptr;  ///< q, k and v of a real layer, or null: synthetic
  ExpOptions exp;                              ///< for kernels on a GPU: a captured table
  double exp_ulp = 0;           ///< > 0: the attention layer again with results moved by so much
  RopeSource rope_source = {};  ///< of the decoder, instead of the device's kernel; may be empty
  EngineOptions engine;         ///< changes no bit
  /// Called with the finished share of all the work as estimated, 0 … 1. May be empty.
  std::function<void(double)> progress;
};

/// The attention layer with its bounded exponential moved within ± ulp, seed after seed: the band
/// in which the bits of real hardware lie, as far as seeds tell.
struct ExponentialBand {
  double ulp = 0;
  std::int64_t runs = 0;
  std::int64_t least_differing = 0;
  std::int64_t most_differing = 0;
  double least_relative_l2 = 0;
  double most_relative_l2 = 0;
};

/// What the drift of the last hidden state does to greedy tokens.
struct FlipReport {
  double logit_deviation = 0;           ///< of the seeded output matrix's logits
  DifferenceErrors errors;              ///< change of the difference of two logits, in logits
  std::vector<FlipRate> rates;          ///< logits compared as they are
  std::vector<FlipRate> rounded_rates;  ///< logits rounded to storage first
  Proportion per_thousand;              ///< expected flips among 1,000 tokens
  Proportion rounded_per_thousand;
  /// One operator alone: the output matrix on one and the same hidden state, with cache-on's kernel
  /// and with cache-off's. The difference of two logits moves by at most this before it is rounded
  /// to storage, so a larger margin cannot flip by it.
  /// Nothing where no bound is known for a kernel's matrix unit.
  std::optional<double> single_operator_bound;
};

/// A tolerance for one comparison.
struct ToleranceLine {
  std::string what;         ///< "attention output"
  std::int64_t terms = 0;   ///< K of its sums; 0: does not apply
  std::int64_t keys = 0;    ///< 0: does not apply
  std::int64_t layers = 0;  ///< 0: does not apply
  std::int64_t elements = 0;
  double root_mean_square = 0;  ///< of the compared numbers
  double largest = 0;           ///< |a − b| that was measured
  Tolerance tolerance;
};

struct Prediction {
  PredictionOptions options;  ///< as run, without `progress` and pointers into the caller's numbers
  AttentionPair attention;    ///< part 1
  std::optional<ExponentialBand> band;    ///< part 1, with exp_ulp
  ProjectionDifference projections;       ///< part 2
  ShapeReport shapes;                     ///< part 3
  GroupedQueries grouped;                 ///< part 4
  DecoderReport drift;                    ///< part 5
  FlipReport flips;                       ///< part 6
  std::vector<ControlResult> controls;    ///< part 7
  std::vector<ToleranceLine> tolerances;  ///< part 8
  bool exp_bounded = false;  ///< some bits hang on an exponential that is known within bounds
  bool controls_passed = true;
};

/// Runs all parts. Errors (usage): those of the parts.
[[nodiscard]] Result<Prediction> predict(const PredictionOptions& options);

}  // namespace kvsim
