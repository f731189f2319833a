// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/cuda_module.h"

#include <fmt/format.h>

namespace kvsim::gpu {

bool CudaModule::find_functions() {
  load_ = driver_.find<int(void**, const void*)>("cuModuleLoadData");
  function_ = driver_.find<int(void**, void*, const char*)>("cuModuleGetFunction");
  allocate_ = driver_.find<int(Address*, std::size_t)>("cuMemAlloc_v2");
  release_ = driver_.find<int(Address)>("cuMemFree_v2");
  to_device_ = driver_.find<int(Address, const void*, std::size_t)>("cuMemcpyHtoD_v2");
  to_host_ = driver_.find<int(void*, Address, std::size_t)>("cuMemcpyDtoH_v2");
  launch_ = driver_.find<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, void*, void**, void**)>("cuLaunchKernel");
  wait_ = driver_.find<int()>("cuCtxSynchronize");
  name_ = driver_.find<int(int, const char**)>("cuGetErrorName");
  return load_ != nullptr && function_ != nullptr && allocate_ != nullptr && release_ != nullptr &&
         to_device_ != nullptr && to_host_ != nullptr && launch_ != nullptr && wait_ != nullptr &&
         name_ != nullptr;
}

Error CudaModule::failed(std::string_view call, int status) const {
  const char* name = nullptr;
  if (name_(status, &name) != 0 || name == nullptr) name = "unknown";
  return Error{ErrorKind::file, fmt::format("{} gives {} ({:.64})", call, status, name)};
}

Result<CudaModule> CudaModule::load(const CudaLibraries& libraries,
                                    std::span<const std::byte> image) {
  // Also starts the driver.
  const auto device = find_cuda_device(libraries);
  if (!device) return device.error();
  auto driver = SharedLibrary::open(libraries.driver);
  if (!driver) return driver.error();
  CudaModule module(std::move(*driver));
  auto* const get = module.driver_.find<int(int*, int)>("cuDeviceGet");
  auto* const retain = module.driver_.find<int(void**, int)>("cuDevicePrimaryCtxRetain");
  auto* const use = module.driver_.find<int(void*)>("cuCtxSetCurrent");
  if (!module.find_functions() || get == nullptr || retain == nullptr || use == nullptr) {
    return Error{ErrorKind::unavailable, "this NVIDIA driver is too old to load kernels"};
  }
  int number = 0;
  void* context = nullptr;
  int status = get(&number, 0);
  if (status == 0) status = retain(&context, number);
  if (status == 0) status = use(context);
  if (status != 0) return module.failed("cuDevicePrimaryCtxRetain", status);
  status = module.load_(&module.module_, image.data());
  if (status == 0) return module;
  return Error{ErrorKind::unavailable,
               fmt::format("no kernels for {} (sm{}) in this build: {}", device->name,
                           device->capability, module.failed("cuModuleLoadData", status).message)};
}

Result<CudaModule::Address> CudaModule::allocate(std::size_t bytes) const {
  Address memory = 0;
  const int status = allocate_(&memory, bytes);
  if (status != 0) return failed("cuMemAlloc", status);
  return memory;
}

void CudaModule::release(Address memory) const { release_(memory); }

Result<bool> CudaModule::to_device(Address to, std::span<const std::byte> from) const {
  const int status = to_device_(to, from.data(), from.size());
  if (status != 0) return failed("cuMemcpyHtoD", status);
  return true;
}

Result<bool> CudaModule::to_host(std::span<std::byte> to, Address from) const {
  const int status = to_host_(to.data(), from, to.size());
  if (status != 0) return failed("cuMemcpyDtoH", status);
  return true;
}

Result<bool> CudaModule::launch(const std::string& kernel, Grid grid,
                                std::span<void*> arguments) const {
  void* function = nullptr;
  int status = function_(&function, module_, kernel.c_str());
  if (status != 0) {
    return Error{ErrorKind::unavailable,
                 fmt::format("no kernel {} for this device: {}", kernel,
                             failed("cuModuleGetFunction", status).message)};
  }
  status = launch_(function, grid.blocks, 1, 1, grid.threads, 1, 1, 0, nullptr, arguments.data(),
                   nullptr);
  if (status != 0) return failed("cuLaunchKernel", status);
  status = wait_();
  if (status != 0) return failed(kernel, status);
  return true;
}

Result<CudaMemory> CudaMemory::with(const CudaModule& module, std::span<const std::byte> bytes) {
  const auto address = module.allocate(bytes.size());
  if (!address) return address.error();
  CudaMemory memory(module, *address);
  const auto copied = module.to_device(*address, bytes);
  if (!copied) return copied.error();
  return memory;
}

}  // namespace kvsim::gpu
