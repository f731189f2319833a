// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "gpu/cuda_device.h"
#include "gpu/probe/elementary_table.h"
#include "gpu/probe/unit_under_test.h"

namespace kvsim::gpu {

/// Where probes run.
class ProbeDevice {
 public:
  ProbeDevice() = default;
  ProbeDevice(const ProbeDevice&) = delete;
  ProbeDevice& operator=(const ProbeDevice&) = delete;
  virtual ~ProbeDevice() = default;

  /// "sim" or "cuda".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The device and its driver; nothing for the simulator.
  [[nodiscard]] virtual Fingerprint fingerprint() const = 0;
  /// The rows of the table whose instruction the device can execute.
  [[nodiscard]] virtual std::vector<std::string> units() const = 0;
  /// The instruction of a row. Error (unavailable): the device has none.
  [[nodiscard]] virtual Result<std::unique_ptr<UnitUnderTest>> unit(const MatrixUnit& row) = 0;
  /// The function of every number. Errors are those of the device.
  [[nodiscard]] virtual Result<std::vector<float>> compute(ElementaryFunction function,
                                                           std::span<const float> numbers) = 0;
};

/// The device of that name: sim, the simulator's own units and correctly rounded functions; cuda,
/// the first NVIDIA GPU. Errors: (usage) another name; (unavailable) "no GPU: …".
[[nodiscard]] Result<std::unique_ptr<ProbeDevice>> make_probe_device(
    std::string_view name, const CudaLibraries& libraries = {});

}  // namespace kvsim::gpu
