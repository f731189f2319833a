// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/prediction_parts.h"

#include <algorithm>
#include <cmath>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

// Queries of a layer whose whole prefill would be too long.
constexpr std::int64_t queries_of_long_layer = 128;
// Keys, at most, of the layers of part 4, which are computed exactly several times.
constexpr std::int64_t most_grouped_keys = 1024;
// Rows, at most, that part 2 projects.
constexpr std::int64_t most_projected_rows = 64;
constexpr std::int64_t band_runs = 5;

AttentionLayer layer_of(const PredictionOptions& options) {
  AttentionLayer layer;
  layer.storage = options.storage;
  layer.scale = static_cast<float>(options.decoder.attention_scale);
  layer.mask.soft_cap = static_cast<float>(options.decoder.attention_soft_cap);
  // The first layer stands for all.
  if (options.decoder.windowed(0)) layer.mask.window = options.decoder.window;
  return layer;
}

AttentionLaunch launch_of(const KernelChoice& kernels) {
  AttentionLaunch launch;
  launch.multiprocessors = kernels.multiprocessors;
  launch.splits = kernels.attention_splits;
  return launch;
}

AttentionShape synthetic_shape(const PredictionOptions& options) {
  return {options.decoder.query_heads, options.decoder.kv_heads, options.kv_len, options.kv_len,
          options.decoder.head_dim};
}

double root_mean_square(double l2, std::int64_t elements) {
  return elements == 0 ? 0 : l2 / std::sqrt(static_cast<double>(elements));
}

/// A line from a measured difference.
ToleranceLine line_of(const char* what, const softfloat::Format& format,
                      const VectorDifference& difference) {
  ToleranceLine line;
  line.what = what;
  line.elements = difference.elements;
  line.root_mean_square = root_mean_square(difference.reference_l2, difference.elements);
  line.largest = difference.max_absolute;
  line.tolerance = make_tolerance({format, line.root_mean_square,
                                   root_mean_square(difference.l2, difference.elements),
                                   line.largest, line.elements});
  return line;
}

}  // namespace

AttentionPart make_attention_part(const PredictionOptions& options, const KernelChoice& kernels) {
  AttentionPart part;
  part.options.layer = layer_of(options);
  part.options.on = {&kernels.attention(1), launch_of(kernels)};
  part.options.off = {&kernels.attention(2), launch_of(kernels)};
  part.options.run.engine = options.engine;
  part.options.run.exp = options.exp;
  if (options.captured != nullptr) {
    part.numbers = *options.captured;
    part.options.positions = part.numbers.shape.query_len;
    return part;
  }
  AttentionShape shape = synthetic_shape(options);
  const double work = static_cast<double>(shape.query_heads * shape.query_len) *
                      static_cast<double>(shape.kv_len * shape.head_dim);
  if (work > static_cast<double>(part.options.most_prefill_work)) {
    shape.query_len = std::min(shape.kv_len, queries_of_long_layer);
    if (part.options.off.launch.splits == 0) part.options.off.launch.splits = 1;
  }
  part.options.positions = std::min(options.positions, shape.query_len);
  part.numbers = make_attention_numbers(options.input, options.seed, shape, options.storage);
  return part;
}

Result<ExponentialBand> exponential_band(const PredictionOptions& options,
                                         const AttentionPart& part, const AttentionPair& plain) {
  ExponentialBand band;
  band.ulp = options.exp_ulp;
  band.runs = band_runs;
  band.least_differing = band.most_differing = plain.difference.differing;
  band.least_relative_l2 = band.most_relative_l2 = plain.difference.relative_l2;
  AttentionPairOptions moved = part.options;
  for (std::int64_t run = 0; run < band_runs; ++run) {
    ExpOptions exp = options.exp;
    exp.table = nullptr;
    exp.ulp = options.exp_ulp;
    exp.seed = options.seed + static_cast<std::uint64_t>(run);
    moved.run.exp = exp;
    const auto pair = compare_attention(moved, part.numbers);
    if (!pair) return pair.error();
    const VectorDifference& found = pair->difference;
    band.least_differing = std::min(band.least_differing, found.differing);
    band.most_differing = std::max(band.most_differing, found.differing);
    band.least_relative_l2 = std::min(band.least_relative_l2, found.relative_l2);
    band.most_relative_l2 = std::max(band.most_relative_l2, found.relative_l2);
  }
  return band;
}

Result<ProjectionDifference> project(const PredictionOptions& options,
                                     const KernelChoice& kernels) {
  ProjectionOptions projection;
  projection.kernels = kernels;
  projection.storage = options.storage;
  projection.hidden = options.decoder.hidden;
  projection.kv_width = options.decoder.kv_heads * options.decoder.head_dim;
  projection.launch_rows = options.kv_len;
  projection.rows = std::min(options.kv_len, most_projected_rows);
  projection.seed = options.seed;
  projection.engine = options.engine;
  return compare_projections(projection);
}

Result<ShapeReport> answer_questions(const PredictionOptions& options,
                                     const KernelChoice& kernels) {
  ShapeOptions shapes;
  shapes.decoder = options.decoder;
  shapes.storage = options.storage;
  shapes.kernels = kernels;
  shapes.launch = launch_of(kernels);
  shapes.mask = layer_of(options).mask;
  shapes.kv_len = options.kv_len;
  shapes.seed = options.seed;
  shapes.run.engine = options.engine;
  shapes.run.exp = options.exp;
  return answer_shapes(shapes, options.questions);
}

Result<GroupedQueries> group_queries(const PredictionOptions& options, const AttentionPart& part) {
  GroupedQueriesOptions request;
  request.attention = part.options;
  request.seed = options.seed;
  request.projection_outputs =
      std::min<std::int64_t>(request.projection_outputs, options.decoder.hidden);
  if (options.captured != nullptr) {
    request.attention.positions = std::min(options.positions, part.numbers.shape.query_len);
    return measure_grouped_queries(request, {&part.numbers, nullptr, nullptr, nullptr});
  }
  AttentionShape shape = synthetic_shape(options);
  shape.kv_len = std::min(shape.kv_len, most_grouped_keys);
  shape.query_len = std::min(options.positions, shape.kv_len);
  request.attention.positions = shape.query_len;
  AttentionShape own_heads = shape;
  own_heads.kv_heads = shape.query_heads;
  const auto numbers = [&](const AttentionShape& each, const softfloat::Format& format) {
    return make_attention_numbers(options.input, options.seed, each, format);
  };
  const AttentionNumbers grouped = numbers(shape, options.storage);
  const AttentionNumbers unrounded = numbers(shape, softfloat::binary32);
  if (shape.group() == 1) {
    return measure_grouped_queries(request, {&grouped, nullptr, &unrounded, nullptr});
  }
  const AttentionNumbers multi_head = numbers(own_heads, options.storage);
  const AttentionNumbers multi_head_unrounded = numbers(own_heads, softfloat::binary32);
  return measure_grouped_queries(request,
                                 {&grouped, &multi_head, &unrounded, &multi_head_unrounded});
}

std::vector<ToleranceLine> make_tolerances(const Prediction& prediction) {
  const PredictionOptions& options = prediction.options;
  std::vector<ToleranceLine> lines;
  ToleranceLine projection = line_of("K/V projection", options.storage, prediction.projections.k);
  projection.terms = options.decoder.hidden;
  lines.push_back(projection);
  ToleranceLine attention =
      line_of("attention output", options.storage, prediction.attention.difference);
  attention.terms = options.decoder.head_dim;
  attention.keys = prediction.attention.on.keys;
  lines.push_back(attention);
  if (prediction.drift.layers.empty()) return lines;
  const LayerDrift& last = prediction.drift.layers.back();
  ToleranceLine state = line_of("hidden state", options.storage, last.on_off);
  state.terms = options.decoder.hidden;
  state.keys = options.prefix + 1;
  state.layers = last.layer + 1;
  lines.push_back(state);
  ToleranceLine logits;
  logits.what = "logits";
  logits.terms = options.decoder.hidden;
  logits.keys = options.prefix + 1;
  logits.layers = last.layer + 1;
  logits.elements = options.margins.vocabulary;
  logits.root_mean_square = prediction.flips.logit_deviation;
  // The change of one logit is smaller than that of the difference of two, by √2 where they are
  // independent.
  logits.largest = prediction.flips.errors.largest;
  logits.tolerance =
      make_tolerance({options.storage, logits.root_mean_square,
                      prediction.flips.errors.deviation / std::sqrt(2.0), 0, logits.elements});
  lines.push_back(logits);
  return lines;
}

}  // namespace kvsim
