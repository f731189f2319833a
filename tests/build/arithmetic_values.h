// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// Operands that the compiler cannot know: another source file defines them. Each shows one way in
/// which a compiler may round differently from the source text.
struct ArithmeticValues {
  _Float16 one;            ///< 1
  _Float16 half_ulp;       ///< 2^-11, half the quantum of [1, 2)
  _Float16 half_x;         ///< 1 + 2^-10
  _Float16 half_x_square;  ///< 1 + 2^-9, x·x rounded to binary16
  float single_x;          ///< 1 + 2^-12
  float single_x_square;   ///< 1 + 2^-11, x·x rounded to binary32
  double double_x;         ///< 1 + 2^-27
  double double_x_square;  ///< 1 + 2^-26, x·x rounded to binary64
  double above_tie;        ///< 1 + 2^-11 + 2^-40; in binary16 1 + 2^-10, by way of binary32 1
};

/// The values above, as the compiler sees them in a constant expression.
inline constexpr ArithmeticValues arithmetic_constants{static_cast<_Float16>(1.0),
                                                       static_cast<_Float16>(0x1p-11),
                                                       static_cast<_Float16>(1.0 + 0x1p-10),
                                                       static_cast<_Float16>(1.0 + 0x1p-9),
                                                       1.0F + 0x1p-12F,
                                                       1.0F + 0x1p-11F,
                                                       1.0 + 0x1p-27,
                                                       1.0 + 0x1p-26,
                                                       1.0 + 0x1p-11 + 0x1p-40};

/// The same values at run time.
extern const volatile ArithmeticValues arithmetic_values;
