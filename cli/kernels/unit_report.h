// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/output.h"
#include "sim/units/matrix_unit.h"

/// What `kvsim kernels --units` says.
namespace kvsim {

/// Every matrix unit, one a row.
[[nodiscard]] Report units_report();

/// Everything about one unit.
[[nodiscard]] Report unit_report(const MatrixUnit& unit);

}  // namespace kvsim
