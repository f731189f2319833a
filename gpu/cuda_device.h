// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/shared_library.h"
#include "softfloat/result.h"

/// NVIDIA's libraries, loaded while the program runs: nothing of CUDA is needed to build.
namespace kvsim::gpu {

/// Where the libraries are looked for: paths or names, the first that can be loaded.
struct CudaLibraries {
  std::vector<std::string> driver = {"libcuda.so.1"};
  std::vector<std::string> runtime = {"libcudart.so.13", "libcudart.so.12"};
  std::vector<std::string> cublas = {"libcublas.so.13", "libcublas.so.12"};
  std::vector<std::string> cublaslt = {"libcublasLt.so.13", "libcublasLt.so.12"};
};

/// The first NVIDIA GPU, as its driver describes it.
struct CudaDevice {
  std::string name;         ///< "NVIDIA H200"
  int capability = 0;       ///< 10 × major + minor: 90
  int multiprocessors = 0;  ///< 132
  int driver = 0;           ///< newest CUDA version that the driver serves: 13000 is 13.0
};

/// Asks the driver. Error (unavailable): "no GPU: …" where there is no driver or no device.
[[nodiscard]] Result<CudaDevice> find_cuda_device(const CudaLibraries& libraries = {});

/// Adds device ("NVIDIA H200 (sm90, 132 multiprocessors)") and driver.
void add_cuda_device(const CudaDevice& device, Fingerprint& fingerprint);

/// Memory of the device through the CUDA runtime.
class CudaRuntime {
 public:
  /// Error (unavailable): no such library.
  [[nodiscard]] static Result<CudaRuntime> load(const CudaLibraries& libraries);

  /// Null where there is not enough.
  [[nodiscard]] void* allocate(std::size_t bytes) const;
  void release(void* memory) const;
  /// Copies and waits; false where that fails, for whatever was started before.
  [[nodiscard]] bool to_device(void* to, const void* from, std::size_t bytes) const;
  [[nodiscard]] bool to_host(void* to, const void* from, std::size_t bytes) const;

 private:
  explicit CudaRuntime(SharedLibrary library) : library_(std::move(library)) {}

  SharedLibrary library_;
  int (*allocate_)(void**, std::size_t) = nullptr;
  int (*release_)(void*) = nullptr;
  int (*copy_)(void*, const void*, std::size_t, int) = nullptr;
};

/// Memory of the device that is released at the end.
class CudaBuffer {
 public:
  CudaBuffer(const CudaRuntime& runtime, std::size_t bytes)
      : runtime_(&runtime), memory_(runtime.allocate(bytes)) {}
  CudaBuffer(CudaBuffer&& other) noexcept
      : runtime_(other.runtime_), memory_(std::exchange(other.memory_, nullptr)) {}
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
  CudaBuffer& operator=(CudaBuffer&&) = delete;
  ~CudaBuffer() {
    if (memory_ != nullptr) runtime_->release(memory_);
  }
  /// Null where there was not enough.
  [[nodiscard]] void* get() const { return memory_; }

 private:
  const CudaRuntime* runtime_;
  void* memory_;
};

}  // namespace kvsim::gpu
