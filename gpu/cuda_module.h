// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "gpu/cuda_device.h"
#include "gpu/shared_library.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Kernels of our own on the first NVIDIA GPU, through the driver alone. Not shared between
/// threads.
class CudaModule {
 public:
  /// Memory of the device: an address.
  using Address = std::uint64_t;

  /// Loads an image that nvcc made. Errors (unavailable): no driver, or the image has nothing for
  /// this device.
  [[nodiscard]] static Result<CudaModule> load(const CudaLibraries& libraries,
                                               std::span<const std::byte> image);

  /// Memory of the device, and whether there was enough.
  [[nodiscard]] Result<Address> allocate(std::size_t bytes) const;
  void release(Address memory) const;
  [[nodiscard]] Result<bool> to_device(Address to, std::span<const std::byte> from) const;
  [[nodiscard]] Result<bool> to_host(std::span<std::byte> to, Address from) const;

  /// How many blocks of how many threads.
  struct Grid {
    unsigned blocks = 1;
    unsigned threads = 32;
  };
  /// Runs a kernel of the image and waits for it; `arguments` point to its arguments. Errors
  /// (unavailable): the image has no such kernel for this device; (file): it failed.
  [[nodiscard]] Result<bool> launch(const std::string& kernel, Grid grid,
                                    std::span<void*> arguments) const;

 private:
  explicit CudaModule(SharedLibrary driver) : driver_(std::move(driver)) {}
  /// False where the driver lacks a function.
  [[nodiscard]] bool find_functions();
  [[nodiscard]] Error failed(std::string_view call, int status) const;

  SharedLibrary driver_;
  void* module_ = nullptr;
  // NVIDIA, CUDA Driver API (13.0): CUresult and CUdevice are int; contexts, modules, functions and
  // streams are pointers; CUdeviceptr has 64 bits.
  int (*load_)(void**, const void*) = nullptr;
  int (*function_)(void**, void*, const char*) = nullptr;
  int (*allocate_)(Address*, std::size_t) = nullptr;
  int (*release_)(Address) = nullptr;
  int (*to_device_)(Address, const void*, std::size_t) = nullptr;
  int (*to_host_)(void*, Address, std::size_t) = nullptr;
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                 void**, void**) = nullptr;
  int (*wait_)() = nullptr;
  int (*name_)(int, const char**) = nullptr;
};

/// Memory of the device that is released at the end.
class CudaMemory {
 public:
  CudaMemory(const CudaModule& module, CudaModule::Address address)
      : module_(&module), address_(address) {}
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  CudaMemory(CudaMemory&& other) noexcept
      : module_(other.module_), address_(std::exchange(other.address_, 0)) {}
  CudaMemory& operator=(CudaMemory&&) = delete;
  ~CudaMemory() {
    if (address_ != 0) module_->release(address_);
  }
  [[nodiscard]] CudaModule::Address address() const { return address_; }

  /// Allocates, and copies `bytes` there.
  [[nodiscard]] static Result<CudaMemory> with(const CudaModule& module,
                                               std::span<const std::byte> bytes);

 private:
  const CudaModule* module_;
  CudaModule::Address address_;
};

}  // namespace kvsim::gpu
