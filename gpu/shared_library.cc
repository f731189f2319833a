// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

namespace kvsim::gpu {

Result<SharedLibrary> SharedLibrary::open(std::span<const std::string> candidates) {
  std::string reason = "no candidate";
  for (const std::string& path : candidates) {
    if (void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return SharedLibrary(path, handle);
    }
    const char* const said = dlerror();
    reason = said == nullptr ? path : said;
  }
  std::replace_if(reason.begin(), reason.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return Error{ErrorKind::unavailable, fmt::format("cannot load {:.300}", reason)};
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace kvsim::gpu
