// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/probe/request.h"
#include "gpu/probe/elementary_table.h"
#include "gpu/probe/probe.h"

namespace kvsim {

/// A unit with what was found.
struct UnitResult {
  const ProbedUnit* probed = nullptr;
  gpu::UnitProbe probe;
  std::string file;  ///< where operands and results are; may be empty
};

/// A function with what was found.
struct TableResult {
  const gpu::ElementaryRow* row = nullptr;
  gpu::ElementaryTable table;
  std::string problem;  ///< why the table is none that --exp-table takes; may be empty
  std::string file;
};

/// The report, and exit code 1 where a unit is not what the table says.
[[nodiscard]] Answer probe_answer(const ProbeRequest& request, const std::vector<UnitResult>& units,
                                  const std::vector<TableResult>& tables);

}  // namespace kvsim
