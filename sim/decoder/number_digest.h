// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

namespace kvsim::decoder {

/// The first 16 hexadecimal digits of the SHA-256 of the numbers as floats, little-endian, every
/// NaN 0x7fc00000; `wide`: as doubles, every NaN 0x7ff8000000000000.
[[nodiscard]] std::string number_digest(std::span<const double> values, bool wide);

}  // namespace kvsim::decoder
