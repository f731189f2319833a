// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/reveal/request.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/reveal.h"
#include "gpu/reveal/same_row.h"

namespace kvsim {

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

/// One row at several numbers of rows, in the order of the request.
[[nodiscard]] Report same_row_report(const RevealRequest& request,
                                     const std::vector<gpu::RowAmongOthers>& rows);

/// "rows 0, columns 572–575: ORDER": a class that is added otherwise than the largest one.
[[nodiscard]] std::string exception_text(const gpu::RevealedSums& sums);

/// One line: why what was found does not explain what was seen; empty where it does.
[[nodiscard]] std::string unexplained_text(const gpu::Revelation& found);

}  // namespace kvsim
