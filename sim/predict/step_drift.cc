// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/step_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/predict/logit_changes.h"

namespace kvsim {
namespace {

constexpr std::int64_t logit_pairs = 128;

double factor_of(double wanted, double found) {
  constexpr double least = 0x1p-20;
  return found > 0 ? std::max(wanted / found, least) : 1;
}

/// What each layer adds that is no branch, with factors of 1.
std::vector<BranchSizes> common_parts(const ActivationSizes& sizes) {
  std::vector<BranchSizes> parts(sizes.branches.size());
  double squares = sizes.embedding * sizes.embedding;  // of the seeded state
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BranchSizes& branch = sizes.branches[i];
    squares += branch.attention * branch.attention + branch.mlp * branch.mlp;
    const double missing = sizes.states[i] * sizes.states[i] - squares;
    if (missing <= 0) continue;
    parts[i].common = std::sqrt(missing);
    squares += missing;
  }
  return parts;
}

}  // namespace

Result<std::vector<BranchSizes>> branch_factors(const DecoderOptions& decoder,
                                                const ActivationSizes& sizes) {
  if (std::ssize(sizes.branches) != decoder.shape.layers ||
      sizes.states.size() != sizes.branches.size()) {
    return Error{ErrorKind::usage, fmt::format("sizes of {} layers for a decoder of {}",
                                               sizes.branches.size(), decoder.shape.layers)};
  }
  DecoderOptions plain = decoder;
  plain.branch_factors = common_parts(sizes);
  plain.controls = false;
  const Result<DecoderReport> report = run_decoder(plain);
  if (!report) return report.error();
  std::vector<BranchSizes> factors = plain.branch_factors;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const BranchSizes& wanted = sizes.branches[i];
    const BranchSizes& found = report->layers[i].branches;
    factors[i].attention = factor_of(wanted.attention, found.attention);
    factors[i].mlp = factor_of(wanted.mlp, found.mlp);
  }
  return factors;
}

Result<StepDrift> step_drift(const DecoderOptions& decoder) {
  DecoderOptions options = decoder;
  options.controls = false;
  const Result<DecoderReport> report = run_decoder(options);
  if (!report) return report.error();
  StepDrift found;
  found.relative.reserve(report->layers.size());
  for (const LayerDrift& layer : report->layers) {
    found.relative.push_back(layer.on_off.relative_l2);
  }
  LogitOptions logits;
  logits.storage = options.storage;
  logits.norm_epsilon = static_cast<float>(options.shape.norm_epsilon);
  logits.trials = logit_pairs;
  logits.seed = options.seed;
  logits.engine = options.engine;
  const auto changes = logit_changes(logits, report->on_state, report->off_state);
  if (!changes) return changes.error();
  double squares = 0;
  for (const LogitChange& change : *changes) {
    squares += change.first * change.first + change.second * change.second;
  }
  found.logit = std::sqrt(squares / static_cast<double>(2 * changes->size()));
  return found;
}

}  // namespace kvsim
