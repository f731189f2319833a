// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/predict/cells.h"
#include "cli/predict/prediction_report.h"

namespace kvsim {
namespace {

using prediction_tables::counted;
using prediction_tables::percent_text;
using prediction_tables::short_text;

std::string attention_words(const Prediction& prediction) {
  const VectorDifference& difference = prediction.attention.difference;
  if (difference.differing > 0) {
    return fmt::format("{} of the attention outputs differ, by at most {} ulp",
                       percent_text(difference.share()), difference.max_ulp);
  }
  const VectorDifference& k = prediction.projections.k;
  if (k.differing == 0) return "No attention output and no K element differs";
  return fmt::format("No attention output differs, but {} of the keys do, by at most {} ulp",
                     percent_text(k.share()), k.max_ulp);
}

std::string flip_words(const FlipReport& flips) {
  const DifferenceErrors& errors = flips.errors;
  if (errors.largest == 0) {
    return fmt::format("in {} trials the top-2 difference did not move", errors.trials);
  }
  return fmt::format(
      "in {} trials the top-2 difference moved by at most {}, so tokens with a smaller margin are "
      "the ones at risk",
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
