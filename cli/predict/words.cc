// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "cli/build_info.h"
#include "cli/predict/cells.h"
#include "cli/predict/prediction_report.h"

namespace kvsim {
namespace {

using prediction_tables::counted;
using prediction_tables::percent_text;
using prediction_tables::short_text;

/// "by at most 2 ulp"; where a few numbers near zero are many ulp apart, what holds for most.
std::string ulp_words(const VectorDifference& difference) {
  constexpr std::int64_t readable = 16;
  if (difference.max_ulp <= readable) {
    return fmt::format("by at most {} ulp", difference.max_ulp);
  }
  // The class of distances below which 99 of 100 differing elements lie.
  std::int64_t seen = 0;
  for (const UlpBin& bin : difference.histogram) {
    if (bin.from == 0) continue;
    seen += bin.count;
    if (100 * seen < 99 * difference.differing) continue;
    return fmt::format("99 % of them by at most {} ulp (the largest, near zero, by {})",
                       std::min(bin.to, difference.max_ulp), difference.max_ulp);
  }
  return fmt::format("by at most {} ulp", difference.max_ulp);
}

std::string attention_words(const Prediction& prediction) {
  const VectorDifference& difference = prediction.attention.difference;
  if (difference.differing > 0) {
    return fmt::format("{} of the attention outputs differ, {}", percent_text(difference.share()),
                       ulp_words(difference));
  }
  const VectorDifference& k = prediction.projections.k;
  if (k.differing == 0) return "No attention output and no K element differs";
  return fmt::format("No attention output differs, but {} of the keys do, {}",
                     percent_text(k.share()), ulp_words(k));
}

std::string flip_words(const FlipReport& flips) {
  const DifferenceErrors& errors = flips.errors;
  if (errors.largest == 0) {
    return fmt::format("in {} trials the difference of the two largest logits did not move",
                       errors.trials);
  }
  return fmt::format(
      "in {} trials the difference of the two largest logits moved by at most {}, so tokens with a "
      "smaller margin are the ones at risk",
      errors.trials, short_text(errors.largest));
}

}  // namespace

std::string prediction_headline(const Prediction& prediction) {
  if (!prediction.controls_passed) {
    return "A control that must be 0 is not, which is a defect of kvsim: please report this "
           "command.";
  }
  return fmt::format("{}; {}.", attention_words(prediction), flip_words(prediction.flips));
}

std::string tolerance_citation(const Prediction& prediction, const PredictionRequest& request) {
  const PredictionOptions& options = prediction.options;
  std::string text;
  for (const ToleranceLine& line : prediction.tolerances) {
    if (line.layers == 0 || line.what != "hidden state") continue;
    text = fmt::format(
        "To cite: \"In {}, cache-on ({}) and cache-off ({}) hidden states of {} (K = {}, {}) may "
        "differ by rounding alone: |a - b| <= {} + {}·|b| holds for all {} elements with 95 % "
        "confidence (kvsim {}, root mean square {}).\"",
        request.storage->name, prediction.attention.on.kernel->name,
        prediction.attention.off.kernel->name, counted(line.layers, "layer", "layers"), line.terms,
        counted(options.prefix + 1, "token", "tokens"), short_text(line.tolerance.absolute),
        short_text(line.tolerance.relative), line.elements, build_info::version(),
        short_text(line.root_mean_square));
  }
  return text;
}

}  // namespace kvsim
