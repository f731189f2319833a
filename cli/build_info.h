// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

/// What this binary was built from. The build fills it in (cmake/KvsimBuildInfo.cmake).
namespace kvsim::build_info {

/// Version of the project, "0.1.0"; CMakeLists.txt is the one place where it is written.
[[nodiscard]] std::string_view version();

/// Commit that was built, as `git describe --always --dirty` names it; "unknown" outside a
/// repository.
[[nodiscard]] std::string_view commit();

/// Compiler and its version, "GNU 12.2.0".
[[nodiscard]] std::string_view compiler();

/// Compile flags of the build, separated by spaces.
[[nodiscard]] std::string_view flags();

}  // namespace kvsim::build_info
