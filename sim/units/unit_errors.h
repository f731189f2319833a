// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <optional>

#include "sim/units/matrix_unit.h"

namespace kvsim {

/// How much one block of a matrix unit may lose, as bounds on its error need it. Of a truncating
/// one, with M the power of two of the largest exponent among its terms, the addend c included:
/// - T-FDPA cuts every product and c toward zero to multiples of 2^−F M: each loses less than that,
///   and less than itself.
/// - TR-FDPA cuts the products at F bits below their own largest exponent, so that each loses less
///   than 2^−F M; rounds their sum down to a multiple of 2^−(F2 + 1) M and c to one of 2^−F M,
///   which loses less than one multiple each; and rounds the total s down at F2 bits of its own
///   exponent: less than 2^−F2 |s|, or 2^−F2 times the smallest normal number.
/// - GTR-FDPA is TR-FDPA with two sums, of even and odd k. Before they are added each is rounded
///   down to a multiple of 2^−F M. c may be dropped, where it is below 2^−(F + 1) M.
/// Then all of them convert to the output's format. A number that is a multiple of what is cut at
/// loses nothing.
struct UnitErrors {
  std::size_t fan_in = 1;           ///< products of a block
  bool is_truncating = false;       ///< terms are cut at F bits below the largest
  bool rounds_every_term = false;   ///< fma
  bool addend_rounds_down = false;  ///< c may lose a whole cut even where it is smaller
  double cut = 0;                   ///< 2^−F
  int cuts_beside_products = 1;     ///< how often `cut` is lost but for once a product
  double sum_cut = 0;               ///< 2^−(F2 + 1) of the sum of the products
  double final_cut = 0;             ///< 2^−F2 of the total
  double floor = 0;                 ///< magnitude that a zero term has in the alignment
  double addend_ulps = 0;           ///< c ÷ ulp(c) is at least that where c is normal
  double conversion = 0;            ///< error of the output's conversion ÷ the power of two of it
  double quantum = 0;               ///< its absolute error where the output is subnormal
};

/// Nothing for a unit with block scales, or one that flushes subnormals (FTZ-AddMul).
[[nodiscard]] std::optional<UnitErrors> unit_errors(const MatrixUnit& unit);

/// The power of two of the exponent of x; 0 for 0.
[[nodiscard]] double power_of_exponent(double x);

}  // namespace kvsim
