// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_library.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "gpu/setting.h"

namespace kvsim::gpu {

Error torch_missing(std::string_view wanted, std::string_view what) {
  return Error{ErrorKind::unavailable,
               fmt::format("{}: {}; install torch 2.11 with scripts/torch/install and build again, "
                           "or build with -DKVSIM_TORCH=DIR, the torch folder of your own Python",
                           wanted, what)};
}

Result<SharedLibrary> torch_library(std::string_view wanted) {
#ifdef KVSIM_TORCH_MODULE
  const std::vector<std::string> candidates = {KVSIM_TORCH_MODULE, "libkvsim_torch.so"};
  const auto library = SharedLibrary::open(candidates);
  if (!library) return torch_missing(wanted, library.error().message);
  fix_setting();
  return library;
#else
  return torch_missing(wanted, "this build has no libtorch");
#endif
}

}  // namespace kvsim::gpu
