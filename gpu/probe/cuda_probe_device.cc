// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/cuda_probe_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/cuda_module.h"

namespace kvsim::gpu {
namespace {

using softfloat::Bits;

constexpr std::size_t row_words = 8;  ///< 32 bytes of a, and of b
constexpr std::size_t most_rows = 4096;

/// The device of the table of units that stands for a compute capability.
std::string_view table_device(int capability) {
  switch (capability / 10) {
    case 8:
      return capability == 89 ? "ada" : "a100";
    case 9:
      return "h100";
    case 10:
      return "b200";
    case 12:
      return "rtxpro6000";
    default:
      break;
  }
  return "none";
}

/// An instruction of which probes.cu has a kernel.
struct KernelRow {
  std::string_view instruction;  ///< what follows the device in a unit's name
  unsigned threads;
  std::size_t tile;  ///< elements of D
};
constexpr unsigned warp = 32;
constexpr unsigned warpgroup = 128;
constexpr std::size_t mma_tile = 16 * 8;
constexpr std::size_t wgmma_tile = 64 * 8;
constexpr std::array kernels{
    KernelRow{"mma.f16.f32", warp, mma_tile},
    KernelRow{"mma.bf16.f32", warp, mma_tile},
    KernelRow{"mma.tf32.f32", warp, mma_tile},
    KernelRow{"mma.f16.f16", warp, mma_tile},
    KernelRow{"mma.e4m3.f32", warp, mma_tile},
    KernelRow{"mma.e5m2.f32", warp, mma_tile},
    KernelRow{"mma.e4m3.f16", warp, mma_tile},
    KernelRow{"mma.e5m2.f16", warp, mma_tile},
    KernelRow{"wgmma.f16.f32", warpgroup, wgmma_tile},
    KernelRow{"wgmma.bf16.f32", warpgroup, wgmma_tile},
    KernelRow{"wgmma.tf32.f32", warpgroup, wgmma_tile},
    KernelRow{"wgmma.f16.f16", warpgroup, wgmma_tile},
    KernelRow{"wgmma.e4m3.f32", warpgroup, wgmma_tile},
    KernelRow{"wgmma.e5m2.f32", warpgroup, wgmma_tile},
    KernelRow{"wgmma.e4m3.f16", warpgroup, wgmma_tile},
    KernelRow{"wgmma.e5m2.f16", warpgroup, wgmma_tile},
};

/// The kernel of a row of the table on a device; null where there is none.
const KernelRow* kernel_of(std::string_view unit, std::string_view device) {
  if (!unit.starts_with(device) || unit.size() <= device.size() || unit[device.size()] != '.') {
    return nullptr;
  }
  const auto found =
      std::ranges::find(kernels, unit.substr(device.size() + 1), &KernelRow::instruction);
  return found == kernels.end() ? nullptr : &*found;
}

std::string function_name(std::string_view instruction) {
  std::string name = fmt::format("kvsim_{}", instruction);
  std::ranges::replace(name, '.', '_');
  return name;
}

/// Codes side by side in 32-bit words, the first in the lowest bits.
void pack(std::span<const Bits> codes, int width, std::span<std::uint32_t> words) {
  const auto bits = static_cast<std::size_t>(width);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    words[i * bits / 32] |= static_cast<std::uint32_t>(codes[i] << (i * bits % 32));
  }
}

class CudaUnit final : public UnitUnderTest {
 public:
  CudaUnit(const CudaModule& module, const KernelRow& kernel, const MatrixUnit& row)
      : module_(&module), kernel_(&kernel), shape_(shape_of(row)) {}

  [[nodiscard]] const UnitShape& shape() const override { return shape_; }

  [[nodiscard]] Result<std::vector<Bits>> run(std::span<const ProbeRow> rows) override {
    std::vector<Bits> results;
    results.reserve(rows.size());
    for (std::size_t first = 0; first < rows.size(); first += most_rows) {
      const auto part = rows.subspan(first, std::min(most_rows, rows.size() - first));
      const auto done = run_part(part, results);
      if (!done) return done.error();
    }
    return results;
  }

 private:
  [[nodiscard]] Result<bool> run_part(std::span<const ProbeRow> rows,
                                      std::vector<Bits>& results) const {
    const int width = shape_.operand.width();
    std::vector<std::uint32_t> a(rows.size() * row_words);
    std::vector<std::uint32_t> b(a.size());
    std::vector<std::uint32_t> c(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      pack(rows[i].a, width, std::span(a).subspan(i * row_words, row_words));
      pack(rows[i].b, width, std::span(b).subspan(i * row_words, row_words));
      c[i] = static_cast<std::uint32_t>(rows[i].c);
    }
    // What no kernel has written is no result of one row throughout.
    std::vector<std::uint32_t> d(rows.size() * kernel_->tile);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = static_cast<std::uint32_t>(i);
    const auto on_device = [&](const std::vector<std::uint32_t>& words) {
      return CudaMemory::with(*module_, std::as_bytes(std::span(words)));
    };
    const auto device_a = on_device(a);
    if (!device_a) return device_a.error();
    const auto device_b = on_device(b);
    if (!device_b) return device_b.error();
    const auto device_c = on_device(c);
    if (!device_c) return device_c.error();
    const auto device_d = on_device(d);
    if (!device_d) return device_d.error();
    std::array<CudaModule::Address, 4> addresses{device_a->address(), device_b->address(),
                                                 device_c->address(), device_d->address()};
    std::array<void*, 4> arguments{&addresses[0], &addresses[1], &addresses[2], &addresses[3]};
    const auto launched =
        module_->launch(function_name(kernel_->instruction),
                        {static_cast<unsigned>(rows.size()), kernel_->threads}, arguments);
    if (!launched) return launched.error();
    const auto copied = module_->to_host(std::as_writable_bytes(std::span(d)), device_d->address());
    if (!copied) return copied.error();
    return read_tiles(d, results);
  }

  /// One result of each tile, whose elements must be alike.
  [[nodiscard]] Result<bool> read_tiles(std::span<const std::uint32_t> d,
                                        std::vector<Bits>& results) const {
    for (std::size_t first = 0; first < d.size(); first += kernel_->tile) {
      const auto tile = d.subspan(first, kernel_->tile);
      const auto other = std::ranges::find_if(
          tile, [&](std::uint32_t element) { return element != tile.front(); });
      if (other != tile.end()) {
        return Error{
            ErrorKind::cannot_tell,
            fmt::format("{}: elements 0 and {} of a tile with equal operands are {:#x} and "
                        "{:#x}",
                        kernel_->instruction, other - tile.begin(), tile.front(), *other)};
      }
      results.push_back(tile.front() & shape_.output.code_mask());
    }
    return true;
  }

  const CudaModule* module_;
  const KernelRow* kernel_;
  UnitShape shape_;
};

class CudaProbeDevice final : public ProbeDevice {
 public:
  CudaProbeDevice(CudaModule module, CudaDevice device)
      : module_(std::move(module)), device_(std::move(device)) {}

  [[nodiscard]] std::string name() const override { return "cuda"; }

  [[nodiscard]] Fingerprint fingerprint() const override {
    Fingerprint fingerprint;
    add_cuda_device(device_, fingerprint);
    return fingerprint;
  }

  [[nodiscard]] std::vector<std::string> units() const override {
    std::vector<std::string> names;
    names.reserve(matrix_units().size());
    for (const MatrixUnit& unit : matrix_units()) {
      if (kernel_of(unit.name, table_device(device_.capability)) == nullptr) continue;
      names.emplace_back(unit.name);
    }
    return names;
  }

  [[nodiscard]] Result<std::unique_ptr<UnitUnderTest>> unit(const MatrixUnit& row) override {
    const KernelRow* const kernel = kernel_of(row.name, table_device(device_.capability));
    if (kernel == nullptr) {
      return Error{ErrorKind::unavailable,
                   fmt::format("{}: no such instruction of {} (sm{}) is probed", row.name,
                               device_.name, device_.capability)};
    }
    return std::unique_ptr<UnitUnderTest>(std::make_unique<CudaUnit>(module_, *kernel, row));
  }

  [[nodiscard]] Result<std::vector<float>> compute(ElementaryFunction function,
                                                   std::span<const float> numbers) override {
    const auto row = std::ranges::find(elementary_rows(), function, &ElementaryRow::function);
    std::vector<float> results(numbers.size());
    const auto x = CudaMemory::with(module_, std::as_bytes(numbers));
    if (!x) return x.error();
    const auto y = CudaMemory::with(module_, std::as_bytes(std::span(results)));
    if (!y) return y.error();
    std::array<CudaModule::Address, 2> addresses{x->address(), y->address()};
    auto count = static_cast<unsigned>(numbers.size());
    std::array<void*, 3> arguments{&addresses[0], &addresses[1], &count};
    constexpr unsigned threads = 256;
    const auto launched = module_.launch(function_name(row->name),
                                         {(count + threads - 1) / threads, threads}, arguments);
    if (!launched) return launched.error();
    const auto copied = module_.to_host(std::as_writable_bytes(std::span(results)), y->address());
    if (!copied) return copied.error();
    return results;
  }

 private:
  CudaModule module_;
  CudaDevice device_;
};

}  // namespace

Result<std::unique_ptr<ProbeDevice>> make_cuda_probe_device(const CudaLibraries& libraries,
                                                            std::span<const std::byte> image) {
  auto device = find_cuda_device(libraries);
  if (!device) return device.error();
  if (image.empty()) {
    return Error{
        ErrorKind::unavailable,
        "this build has no CUDA kernels; install CUDA 13, or run scripts/cuda/install, and "
        "build again"};
  }
  auto module = CudaModule::load(libraries, image);
  if (!module) return module.error();
  return std::unique_ptr<ProbeDevice>(
      std::make_unique<CudaProbeDevice>(std::move(*module), std::move(*device)));
}

}  // namespace kvsim::gpu
