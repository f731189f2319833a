// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kvsim {

/// SHA-256 (FIPS 180-4) of bytes, as 64 hexadecimal digits in lower case: what `sha256sum` prints.
/// Results and files are told apart by it; it protects nothing.
[[nodiscard]] std::string sha256(std::span<const std::byte> bytes);

}  // namespace kvsim
