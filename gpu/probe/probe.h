// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/probe/findings.h"

namespace kvsim::gpu {

/// One property: what was seen, and what the row of the table says.
struct ComparedProperty {
  std::string name;
  Seen seen;
  Seen declared;
  std::optional<bool> agrees;  ///< nothing where operands do not show it
};

/// What probes say of a unit, beside its row.
struct UnitProbe {
  std::vector<ComparedProperty> properties;
  std::optional<std::string> no_structure;  ///< why there are no properties
  std::vector<ProbeRow> rows;               ///< everything that was run …
  std::vector<softfloat::Bits> results;     ///< … and what came of it
  std::size_t different = 0;                ///< results that the row gives otherwise
  std::size_t first_different = 0;          ///< the first of them

  /// Every property that shows agrees, and every result.
  [[nodiscard]] bool equal() const;
};

struct ProbeOptions {
  std::size_t random_rows = 2000;  ///< beside the probes
  std::uint64_t seed = 1;
};

/// Probes a unit, runs random rows too, and compares everything with a row of the table. Errors are
/// those of the unit.
[[nodiscard]] Result<UnitProbe> probe_unit(UnitUnderTest& unit, const MatrixUnit& row,
                                           const ProbeOptions& options = {});

}  // namespace kvsim::gpu
