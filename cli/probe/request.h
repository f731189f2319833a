// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "gpu/probe/probe.h"
#include "gpu/probe/probe_device.h"
#include "softfloat/result.h"

namespace kvsim {

/// The options of the command.
[[nodiscard]] std::span<const OptionSpec> probe_option_rows();

/// One unit to probe, and the row that it is compared with.
struct ProbedUnit {
  MatrixUnit unit;
  MatrixUnit row;
};

/// What `kvsim probe` was asked for.
struct ProbeRequest {
  std::unique_ptr<gpu::ProbeDevice> device;
  std::vector<ProbedUnit> units;
  std::vector<const gpu::ElementaryRow*> tables;
  int table_bits = 24;
  gpu::ProbeOptions options;
  std::optional<std::string> out;  ///< folder of the files
};

/// Reads the options and finds the device.
[[nodiscard]] Result<ProbeRequest> probe_request(const ParsedOptions& options);

}  // namespace kvsim
