// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/reveal/request.h"
#include "gpu/backend.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/reveal.h"

namespace kvsim {

/// "0–3, 8": runs of numbers, of many the first.
[[nodiscard]] std::string runs_text(const std::vector<std::int64_t>& numbers);

/// What else changes the bits, as a table and as JSON.
[[nodiscard]] Table dependences_table(const std::vector<gpu::Dependence>& dependences);
[[nodiscard]] Json dependences_json(const std::vector<gpu::Dependence>& dependences);

/// The entries of a back end's fingerprint.
[[nodiscard]] Json fingerprint_json(const gpu::Backend& backend);

/// What was found of one shape.
[[nodiscard]] Report reveal_report(const RevealRequest& request, const gpu::Revelation& found,
                                   const std::vector<gpu::Dependence>& dependences);

/// Sizes that give the same bits, and what was found of the first of each.
struct RevealedSizes {
  gpu::SizeClass sizes;
  gpu::Revelation found;
};
[[nodiscard]] Report sweep_report(const RevealRequest& request, const SweepRequest& sweep,
                                  const std::vector<RevealedSizes>& classes);

/// "rows 0, columns 572–575: ORDER": a class that is added otherwise than the largest one.
[[nodiscard]] std::string exception_text(const gpu::RevealedSums& sums);

/// One line: why what was found does not explain what was seen; empty where it does.
[[nodiscard]] std::string unexplained_text(const gpu::Revelation& found);

}  // namespace kvsim
