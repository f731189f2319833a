// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/probe/elementary_table.h"
#include "gpu/probe/probe.h"
#include "model/safetensors_header.h"
#include "softfloat/result.h"

namespace kvsim {

/// Where a file comes from: program, version, device and driver, and of a device the date.
[[nodiscard]] std::vector<MetadataEntry> provenance(std::string_view device,
                                                    const gpu::Fingerprint& fingerprint);

/// Writes a, b, c, the scales and d of every row, as `kvsim replay dot --unit ROW --expect d` reads
/// them. Errors: (file).
[[nodiscard]] Result<bool> write_vectors(const std::string& path, const MatrixUnit& row,
                                         const gpu::UnitProbe& probe,
                                         std::vector<MetadataEntry> metadata);

/// Writes the values of a table as the F32 tensor [n] or [halves, n] of the function's name; ex2 is
/// what --exp-table reads. Errors: (file).
[[nodiscard]] Result<bool> write_table(const std::string& path, const gpu::ElementaryRow& row,
                                       const gpu::ElementaryTable& table,
                                       std::vector<MetadataEntry> metadata);

}  // namespace kvsim
