// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>

#include "experiments/statistics/estimate.h"
#include "softfloat/result.h"

/// Intervals of figures that are costly to compute, such as coefficients of a fit.
namespace kvsim::statistics {

/// The delete-a-group jackknife. Clusters are dealt out to G groups; `without` has the figure of
/// all clusters but those of each group in turn. Standard error √((G − 1) ÷ G · Σ(without −
/// value)²) and Student's interval with G − 1 degrees of freedom. Source: Kott, "The delete-a-group
/// jackknife", Journal of Official Statistics 17(4), 2001. Errors (usage): a number that is not
/// finite, a confidence outside (0, 1); (cannot_tell) fewer than two groups.
[[nodiscard]] Result<Estimate> grouped_jackknife(double value, std::span<const double> without,
                                                 double confidence = usual_confidence);

}  // namespace kvsim::statistics
