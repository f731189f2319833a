// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/path_bound.h"

#include <algorithm>
#include <cmath>

#include "fuzz/flip/head_bound.h"

namespace kvsim::fuzz {

Result<PathBound> PathBound::make(const AttentionKernel& kernel, const AttentionProblem& problem) {
  auto plan = plan_bound(kernel, problem);
  if (!plan) return plan.error();
  return PathBound(*std::move(plan), problem.storage);
}

double PathBound::operator()(const ExactAttentionCase& exact, std::span<const float> outputs,
                             std::span<const float> tokens) const {
  double bound = 0;
  for (std::size_t h = 0; h < exact.heads.size(); ++h) {
    bound += HeadBound(plan_, input_, exact.heads[h], exact.keys_of(h)).run();
  }
  for (std::size_t i = 0; plan_.output && i < outputs.size(); ++i) {
    const double weight =
        std::abs(static_cast<double>(tokens[i]) - static_cast<double>(tokens[i + outputs.size()]));
    const double output = std::abs(static_cast<double>(outputs[i]));
    if (!std::isfinite(output)) return no_bound;
    bound += weight * std::max(plan_.output->unit_roundoff * power_of_exponent(output),
                               plan_.output->half_quantum);
  }
  return std::isnan(bound) ? no_bound : outward(bound);
}

}  // namespace kvsim::fuzz
