// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "gpu/probe/property.h"
#include "gpu/probe/structure.h"
#include "gpu/probe/unit_under_test.h"

namespace kvsim::gpu {

/// Every property that results of the unit show, from its structure on. The operands are chosen by
/// the shape and by what was seen before, never by a row of the table. Errors are those of the
/// unit; (cannot_tell) no structure gives what it computes.
[[nodiscard]] Result<Properties> find_properties(UnitUnderTest& unit);

/// What a row of the table says of the same properties, derived from its parameters alone.
[[nodiscard]] Properties declared_properties(const MatrixUnit& unit);

}  // namespace kvsim::gpu
