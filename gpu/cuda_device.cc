// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/cuda_device.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace kvsim::gpu {
namespace {

// NVIDIA, CUDA Driver API (13.0): CUresult, CUdevice and CUdevice_attribute are int.
constexpr int multiprocessor_count = 16;
constexpr int capability_major = 75;
constexpr int capability_minor = 76;

Error no_gpu(std::string_view reason) {
  return Error{ErrorKind::unavailable, fmt::format("no GPU: {}", reason)};
}

}  // namespace

Result<CudaDevice> find_cuda_device(const CudaLibraries& libraries) {
  const auto driver = SharedLibrary::open(libraries.driver);
  if (!driver) return no_gpu("there is no NVIDIA driver here (libcuda.so.1)");
  auto* const init = driver->find<int(unsigned)>("cuInit");
  auto* const version = driver->find<int(int*)>("cuDriverGetVersion");
  auto* const count = driver->find<int(int*)>("cuDeviceGetCount");
  auto* const get = driver->find<int(int*, int)>("cuDeviceGet");
  auto* const name = driver->find<int(char*, int, int)>("cuDeviceGetName");
  auto* const attribute = driver->find<int(int*, int, int)>("cuDeviceGetAttribute");
  if (init == nullptr || version == nullptr || count == nullptr || get == nullptr ||
      name == nullptr || attribute == nullptr) {
    return no_gpu("libcuda.so.1 is no NVIDIA driver");
  }
  if (const int status = init(0); status != 0) {
    return no_gpu(fmt::format("the NVIDIA driver does not start (cuInit gives {})", status));
  }
  int devices = 0;
  int device = 0;
  if (count(&devices) != 0 || devices == 0 || get(&device, 0) != 0) {
    return no_gpu("the NVIDIA driver sees no device");
  }
  CudaDevice found;
  std::array<char, 128> text{};
  int major = 0;
  int minor = 0;
  if (version(&found.driver) != 0 ||
      name(text.data(), static_cast<int>(text.size()) - 1, device) != 0 ||
      attribute(&found.multiprocessors, multiprocessor_count, device) != 0 ||
      attribute(&major, capability_major, device) != 0 ||
      attribute(&minor, capability_minor, device) != 0) {
    return no_gpu("the NVIDIA driver does not describe its first device");
  }
  found.name = text.data();
  found.capability = 10 * major + minor;
  return found;
}

void add_cuda_device(const CudaDevice& device, Fingerprint& fingerprint) {
  fingerprint.entries.emplace_back(fingerprint_names::device,
                                   fmt::format("{} (sm{}, {} multiprocessors)", device.name,
                                               device.capability, device.multiprocessors));
  fingerprint.entries.emplace_back(
      "driver", fmt::format("CUDA {}.{}", device.driver / 1000, device.driver % 1000 / 10));
}

Result<CudaRuntime> CudaRuntime::load(const CudaLibraries& libraries) {
  auto library = SharedLibrary::open(libraries.runtime);
  if (!library) return library.error();
  CudaRuntime runtime(std::move(*library));
  runtime.allocate_ = runtime.library_.find<int(void**, std::size_t)>("cudaMalloc");
  runtime.release_ = runtime.library_.find<int(void*)>("cudaFree");
  runtime.copy_ = runtime.library_.find<int(void*, const void*, std::size_t, int)>("cudaMemcpy");
  if (runtime.allocate_ == nullptr || runtime.release_ == nullptr || runtime.copy_ == nullptr) {
    return Error{ErrorKind::unavailable,
                 fmt::format("{:.200} is no CUDA runtime", runtime.library_.path())};
  }
  return runtime;
}

void* CudaRuntime::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  return allocate_(&memory, bytes) == 0 ? memory : nullptr;
}

void CudaRuntime::release(void* memory) const { release_(memory); }

bool CudaRuntime::to_device(void* to, const void* from, std::size_t bytes) const {
  constexpr int host_to_device = 1;  // cudaMemcpyKind
  return copy_(to, from, bytes, host_to_device) == 0;
}

bool CudaRuntime::to_host(void* to, const void* from, std::size_t bytes) const {
  constexpr int device_to_host = 2;
  return copy_(to, from, bytes, device_to_host) == 0;
}

}  // namespace kvsim::gpu
