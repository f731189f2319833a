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
  int products;                  ///< K
  unsigned threads;
  std::size_t tile;  ///< elements of D
  /// Bits of an element of A or B in memory, its code `shift` bits above the lowest.
  int element_bits;
  int shift = 0;
};
constexpr unsigned warp = 32;
constexpr unsigned warpgroup = 128;
constexpr std::size_t mma_tile = 16 * 8;
constexpr std::size_t wgmma_tile = 64 * 8;
constexpr KernelRow mma(std::string_view instruction, int products) {
  return {instruction, products, warp, mma_tile, 256 / products};
}
constexpr KernelRow wgmma(std::string_view instruction, int products) {
  return {instruction, products, warpgroup, wgmma_tile, 256 / products};
}
/// Four bits in the middle of a byte.
constexpr KernelRow in_bytes(std::string_view instruction) {
  return {instruction, 32, warp, mma_tile, 8, 2};
}
constexpr std::array kernels{
    KernelRow{"mma.f64.f64", 4, warp, 8 * 8, 64},
    KernelRow{"mma.f64.f64", 16, warp, mma_tile, 64},
    mma("mma.f16.f32", 16),
    mma("mma.bf16.f32", 16),
    mma("mma.tf32.f32", 8),
    mma("mma.f16.f16", 16),
    mma("mma.e4m3.f32", 32),
    mma("mma.e5m2.f32", 32),
    mma("mma.e3m2.f32", 32),
    mma("mma.e2m3.f32", 32),
    in_bytes("mma.e2m1.f32"),
    mma("mma.e4m3.f16", 32),
    mma("mma.e5m2.f16", 32),
    mma("mma.e3m2.f16", 32),
    mma("mma.e2m3.f16", 32),
    in_bytes("mma.e2m1.f16"),
    mma("mma.mx_e4m3.f32", 32),
    mma("mma.mx_e5m2.f32", 32),
    mma("mma.mx_e3m2.f32", 32),
    mma("mma.mx_e2m3.f32", 32),
    in_bytes("mma.mx_e2m1.f32"),
    mma("mma.mxf4.f32", 64),
    mma("mma.nvf4.f32", 64),
    wgmma("wgmma.f16.f32", 16),
    wgmma("wgmma.bf16.f32", 16),
    wgmma("wgmma.tf32.f32", 8),
    wgmma("wgmma.f16.f16", 16),
    wgmma("wgmma.e4m3.f32", 32),
    wgmma("wgmma.e5m2.f32", 32),
    wgmma("wgmma.e4m3.f16", 32),
    wgmma("wgmma.e5m2.f16", 32),
};

/// The kernel of a row of the table on a device; null where there is none.
const KernelRow* kernel_of(const MatrixUnit& unit, std::string_view device) {
  const std::string_view name = unit.name;
  if (!name.starts_with(device) || name.size() <= device.size() || name[device.size()] != '.') {
    return nullptr;
  }
  const int products = shape_of(unit).products;
  const auto found = std::ranges::find_if(kernels, [&](const KernelRow& kernel) {
    return kernel.instruction == name.substr(device.size() + 1) && kernel.products == products;
  });
  return found == kernels.end() ? nullptr : &*found;
}

std::string function_name(std::string_view instruction) {
  std::string name = fmt::format("kvsim_{}", instruction);
  std::ranges::replace(name, '.', '_');
  return name;
}

/// Where the codes of a row lie in its 32-bit words, the first in the lowest bits.
struct Packing {
  int bits;       ///< of one code and what pads it
  int shift = 0;  ///< of the code above its lowest bit
  std::size_t words = 1;
};

/// The words of all rows; `codes_of` gives the codes of one.
template <typename CodesOf>
std::vector<std::uint32_t> pack(std::span<const ProbeRow> rows, const Packing& packing,
                                CodesOf codes_of) {
  std::vector<std::uint32_t> words(rows.size() * packing.words);
  const auto bits = static_cast<std::size_t>(packing.bits);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::span<const Bits> codes = codes_of(rows[row]);
    const std::span mine = std::span(words).subspan(row * packing.words, packing.words);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const Bits code = codes[i] << packing.shift;
      mine[i * bits / 32] |= static_cast<std::uint32_t>(code << (i * bits % 32));
      if (bits > 32) mine[i * bits / 32 + 1] |= static_cast<std::uint32_t>(code >> 32);
    }
  }
  return words;
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
    const int row_bits = kernel_->products * kernel_->element_bits;
    const Packing operands{kernel_->element_bits, kernel_->shift,
                           static_cast<std::size_t>(row_bits) / 32};
    const Packing addends{std::max(32, shape_.output.width()), 0, result_words()};
    const Packing scales{8};
    // What no kernel has written is no result of one row throughout.
    std::vector<std::uint32_t> d(rows.size() * kernel_->tile * result_words());
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = static_cast<std::uint32_t>(i);
    const std::array<std::vector<std::uint32_t>, 6> host{
        pack(rows, operands, [](const ProbeRow& row) { return std::span(row.a); }),
        pack(rows, operands, [](const ProbeRow& row) { return std::span(row.b); }),
        pack(rows, addends, [](const ProbeRow& row) { return std::span(&row.c, 1); }),
        d,
        pack(rows, scales, [](const ProbeRow& row) { return std::span(row.a_scales); }),
        pack(rows, scales, [](const ProbeRow& row) { return std::span(row.b_scales); })};
    std::vector<CudaMemory> memory;
    memory.reserve(host.size());
    std::array<CudaModule::Address, 6> addresses{};
    std::array<void*, 6> arguments{};
    for (std::size_t i = 0; i < host.size(); ++i) {
      auto mine = CudaMemory::with(*module_, std::as_bytes(std::span(host.at(i))));
      if (!mine) return mine.error();
      memory.push_back(std::move(*mine));
      addresses.at(i) = memory.back().address();
      arguments.at(i) = &addresses.at(i);
    }
    // A kernel without scales takes the first four.
    const auto launched =
        module_->launch(function_name(kernel_->instruction),
                        {static_cast<unsigned>(rows.size()), kernel_->threads}, arguments);
    if (!launched) return launched.error();
    const auto copied = module_->to_host(std::as_writable_bytes(std::span(d)), addresses[3]);
    if (!copied) return copied.error();
    return read_tiles(d, results);
  }

  /// 32-bit words of an element of D.
  [[nodiscard]] std::size_t result_words() const { return shape_.output.width() > 32 ? 2 : 1; }

  /// One result of each tile, whose elements must be alike.
  [[nodiscard]] Result<bool> read_tiles(std::span<const std::uint32_t> d,
                                        std::vector<Bits>& results) const {
    const std::size_t words = result_words();
    const auto element = [&](std::size_t i) {
      Bits code = d[i * words];
      if (words > 1) code |= Bits{d[i * words + 1]} << 32U;
      return code;
    };
    const std::size_t elements = d.size() / words;
    for (std::size_t first = 0; first < elements; first += kernel_->tile) {
      for (std::size_t i = 1; i < kernel_->tile; ++i) {
        if (element(first + i) == element(first)) continue;
        return Error{
            ErrorKind::cannot_tell,
            fmt::format("{}: elements 0 and {} of a tile with equal operands are {:#x} and "
                        "{:#x}",
                        kernel_->instruction, i, element(first), element(first + i))};
      }
      results.push_back(element(first) & shape_.output.code_mask());
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
      if (kernel_of(unit, table_device(device_.capability)) == nullptr) continue;
      names.emplace_back(unit.name);
    }
    return names;
  }

  [[nodiscard]] Result<std::unique_ptr<UnitUnderTest>> unit(const MatrixUnit& row) override {
    const KernelRow* const kernel = kernel_of(row, table_device(device_.capability));
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
