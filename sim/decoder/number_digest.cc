// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/number_digest.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "softfloat/sha256.h"

namespace kvsim::decoder {

std::string number_digest(std::span<const double> values, bool wide) {
  constexpr std::uint64_t wide_nan = 0x7ff8000000000000U;
  constexpr std::uint64_t nan = 0x7fc00000U;
  constexpr std::size_t digits = 16;
  std::vector<std::byte> bytes;
  const unsigned width = wide ? 64 : 32;
  bytes.reserve(values.size() * width / 8);
  for (const double value : values) {
    std::uint64_t bits = 0;
    if (std::isnan(value)) {
      bits = wide ? wide_nan : nan;
    } else {
      bits = wide ? std::bit_cast<std::uint64_t>(value)
                  : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
    for (unsigned shift = 0; shift < width; shift += 8) {
      bytes.push_back(static_cast<std::byte>((bits >> shift) & 0xffU));
    }
  }
  return sha256(bytes).substr(0, digits);
}

}  // namespace kvsim::decoder
