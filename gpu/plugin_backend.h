// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string_view>

#include "gpu/backend.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// A shared library with the C interface of include/kvsim/plugin.h. What it says of itself is
/// checked when it is loaded, what it computes after every call: a result of another size or
/// format, numbers that are not of the format, and writing past the result are errors. It shares
/// the process, so it can crash it.
///
/// Errors: (unavailable) it cannot be loaded or does not serve this version; (usage) it describes
/// itself wrongly.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_plugin_backend(std::string_view path);

}  // namespace kvsim::gpu
