// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/engine/numbers.h"
#include "sim/engine/simd_level.h"
#include "sim/engine/unit_plan.h"

/// The seam between portable code and the code of matrix units that is compiled once per
/// instruction set.
namespace kvsim::engine {

inline constexpr std::int64_t most_panel_columns = 64;  ///< 4 vectors of 16 lanes
inline constexpr std::int64_t longest_block = 32;       ///< products of one block

/// Rows of a as the kernel reads them, filled by pack_rows.
struct PackedRows {
  /// [rows][stride], times 2^−UnitPlan::a_scale, in the unit's order, zeros at the end.
  float* values = nullptr;
  std::uint8_t* codes = nullptr;  ///< [rows][stride]: 163 − biased exponent; 255 of a zero
  std::uint8_t* flags = nullptr;  ///< [rows]: RowFlag
  std::int64_t stride = 0;        ///< a multiple of 16, at least padded_terms()
};

/// Numbers below 2^tiny_exponent are looked at closer: products of larger ones have exponents that
/// bytes hold, and last bits that a bfloat16 chain cannot lose to underflow.
inline constexpr int tiny_exponent = -56;

/// What pack_rows finds in a row.
enum RowFlag : std::uint8_t {
  row_is_tame = 0,
  row_is_for_softfloat = 1,  ///< an infinity, a NaN or a number of 2^37 or more
  row_has_tiny_numbers = 2,  ///< below 2^tiny_exponent, but not zero
};

/// One call of pack_rows: rows of a, or one row after another of `terms` numbers.
struct PackArguments {
  const UnitPlan* plan = nullptr;
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  std::int64_t rows = 0;
  std::int64_t terms = 0;
  PackedRows packed;
};

/// One call of load_addends: sums[i × panel_columns + j] = c[i × c_stride + j].
struct AddendArguments {
  const UnitPlan* plan = nullptr;
  const float* c = nullptr;
  std::int64_t c_stride = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float* sums = nullptr;
};

/// One tile: `rows` × at most one panel of columns.
struct UnitTile {
  const UnitPlan* plan = nullptr;
  PackedRows a;
  std::int64_t rows = 0;
  std::int64_t terms = 0;
  NumberPointer b;  ///< its first column
  std::int64_t b_stride = 0;
  bool b_transposed = false;
  std::int64_t columns = 0;                   ///< 1 … panel_columns
  std::span<const std::byte> read_next = {};  ///< fetched meanwhile
  /// [rows][panel_columns]: c on entry, as UnitPlan accepts it in lanes; the result on return, NaN
  /// where an element must be computed on softfloat.
  float* sums = nullptr;
  float* addends = nullptr;  ///< addend_last: [rows][panel_columns], room for c
};

/// The functions of one level.
struct UnitKernel {
  std::int64_t panel_columns = 0;
  void (*pack_rows)(const PackArguments&) = nullptr;
  /// Puts 0 in place of addends that are not for lanes; true where there are any.
  bool (*load_addends)(const AddendArguments&) = nullptr;
  /// True where any result is NaN.
  bool (*run_tile)(const UnitTile&) = nullptr;
};

/// The kernel of a level; null pointers where this build or this CPU lacks it.
[[nodiscard]] UnitKernel unit_kernel(SimdLevel level);

}  // namespace kvsim::engine
