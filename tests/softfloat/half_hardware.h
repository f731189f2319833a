// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

namespace kvsim::oracle {

/// Writes a ∘ b for b = 0…65535, rounded to nearest, ties to even, by the CPU; NaN of any payload.
using RowFunction = void (*)(std::uint16_t a, std::uint16_t* row);

/// The best way that this CPU has: AVX512-FP16, F16C, or integers.
RowFunction binary16_add_row();
RowFunction binary16_mul_row();
RowFunction bfloat16_add_row();
RowFunction bfloat16_mul_row();

/// "avx512fp16", "f16c" or "integers": how the rows of binary16 are computed.
const char* binary16_method();

}  // namespace kvsim::oracle
