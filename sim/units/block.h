// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>

#include "sim/units/matrix_unit.h"
#include "softfloat/format.h"
#include "softfloat/fused_sum.h"

/// The operations of matrix units on one block; unit_dot (dot.h) makes instructions of them.
namespace kvsim::units {

/// One pair of elements, as codes of MatrixUnit::input, and the scales of their blocks.
struct Pair {
  softfloat::Bits a = 0;
  softfloat::Bits b = 0;
  softfloat::Bits a_scale = 0;
  softfloat::Bits b_scale = 0;
};

/// A block: L pairs, in the order in which the unit takes them.
using Block = std::span<const Pair>;

/// The format and mode of a unit's conversion. `unused_bits` stand below the converted number.
struct Conversion {
  softfloat::Format format;
  softfloat::Mode mode;
  int unused_bits = 0;
};
[[nodiscard]] Conversion conversion_of(const MatrixUnit& unit);

/// T-FDPA, ST-FDPA and GST-FDPA (MMA-Sim v2, algorithms 7 to 9).
[[nodiscard]] softfloat::Bits truncated_block(const MatrixUnit& unit, Block block,
                                              softfloat::Bits c);

/// TR-FDPA and GTR-FDPA (algorithms 10 and 11, as the authors' program computes them).
[[nodiscard]] softfloat::Bits rounded_down_block(const MatrixUnit& unit, Block block,
                                                 softfloat::Bits c);

/// E-FDPA (algorithm 6). A sum that is exactly zero is +0.
[[nodiscard]] softfloat::Bits exact_block(const MatrixUnit& unit, Block block, softfloat::Bits c);

/// FTZ-AddMul (algorithms 1 and 2) of 2 or 4 pairs; `c` is flushed already.
[[nodiscard]] softfloat::Bits flushing_block(const MatrixUnit& unit, Block block,
                                             softfloat::Bits c);

/// Zeros and subnormals become +0: what CDNA2 does to operands.
[[nodiscard]] softfloat::Bits flush_operand(const softfloat::Format& format, softfloat::Bits a);

/// a × b + c in the unit's output format and mode, with its NaN.
[[nodiscard]] softfloat::Bits fma_step(const MatrixUnit& unit, const Pair& pair, softfloat::Bits c);

/// x + y in the unit's output format and mode, ties to even, with its NaN.
[[nodiscard]] softfloat::Bits add_step(const MatrixUnit& unit, softfloat::Bits x,
                                       softfloat::Bits y);

/// The code, or the unit's NaN where it is a NaN.
[[nodiscard]] softfloat::Bits with_unit_nan(const MatrixUnit& unit, softfloat::Bits code);

}  // namespace kvsim::units
