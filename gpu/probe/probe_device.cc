// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/probe_device.h"

#include <fmt/format.h>

#include <utility>

#include "gpu/cuda/embedded_probes.h"
#include "gpu/probe/cuda_probe_device.h"

namespace kvsim::gpu {
namespace {

/// The simulator itself, to test the probes and to see what they show.
class SimulatedDevice final : public ProbeDevice {
 public:
  [[nodiscard]] std::string name() const override { return "sim"; }
  [[nodiscard]] Fingerprint fingerprint() const override { return {}; }

  [[nodiscard]] std::vector<std::string> units() const override {
    std::vector<std::string> names;
    names.reserve(matrix_units().size());
    for (const MatrixUnit& unit : matrix_units()) names.emplace_back(unit.name);
    return names;
  }

  [[nodiscard]] Result<std::unique_ptr<UnitUnderTest>> unit(const MatrixUnit& row) override {
    return std::unique_ptr<UnitUnderTest>(std::make_unique<SimulatedUnit>(row));
  }

  [[nodiscard]] Result<std::vector<float>> compute(ElementaryFunction function,
                                                   std::span<const float> numbers) override {
    std::vector<float> results;
    results.reserve(numbers.size());
    for (const float x : numbers) results.push_back(correctly_rounded(function, x));
    return results;
  }
};

}  // namespace

Result<std::unique_ptr<ProbeDevice>> make_probe_device(std::string_view name,
                                                       const CudaLibraries& libraries) {
  if (name == "sim") return std::unique_ptr<ProbeDevice>(std::make_unique<SimulatedDevice>());
  if (name != "cuda") {
    return Error{ErrorKind::usage, fmt::format("device '{:.64}'; cuda and sim are accepted", name)};
  }
  return make_cuda_probe_device(libraries, embedded_probes());
}

}  // namespace kvsim::gpu
