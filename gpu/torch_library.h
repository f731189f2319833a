// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <string_view>

#include "gpu/shared_library.h"
#include "softfloat/result.h"

/// libkvsim_torch.so, which holds all that is compiled with PyTorch's headers.
namespace kvsim::gpu {

/// The module. From the first call on the setting holds (gpu/setting.h). Error (unavailable): this
/// build has no libtorch, or it cannot be loaded; the message begins with `wanted`, for which it is
/// asked, and says how to get it.
[[nodiscard]] Result<SharedLibrary> torch_library(std::string_view wanted);

/// The error (unavailable) of that kind.
[[nodiscard]] Error torch_missing(std::string_view wanted, std::string_view what);

/// A function of the module, of the type that the module gives it. Errors as torch_library().
template <class Function>
[[nodiscard]] Result<std::function<Function>> torch_function(std::string_view wanted,
                                                             const char* name) {
  const Result<SharedLibrary> library = torch_library(wanted);
  if (!library) return library.error();
  auto* const function = library->find<Function>(name);
  if (function == nullptr) return torch_missing(wanted, "libkvsim_torch.so is of another version");
  return std::function<Function>(function);
}

}  // namespace kvsim::gpu
