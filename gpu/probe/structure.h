// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/probe/unit_under_test.h"

namespace kvsim::gpu {

/// Which additions of an instruction share a rounding, and in which order they come.
struct UnitStructure {
  int fan_in = 1;  ///< products that are added at once; 1: one after the other
  OperandOrder order = OperandOrder::in_turn;
  Addend addend = Addend::first;
  int accumulators = 1;   ///< of products that are added one after the other
  bool in_pairs = false;  ///< the products of a block are joined in pairs, each sum rounded
  bool exact = false;     ///< a block is summed exactly and rounded once: nothing is cut off

  friend bool operator==(const UnitStructure&, const UnitStructure&) = default;
};

/// "2 blocks of 8, c first".
[[nodiscard]] std::string to_string(const UnitStructure& structure, int products);

/// The k of the first block, or, where products are added one after the other, those of the first
/// accumulator, in the order in which they are added.
[[nodiscard]] std::vector<int> first_group(const UnitStructure& structure, int products);

/// The k of the last block; the same as first_group() where products are added one after the other.
[[nodiscard]] std::vector<int> last_group(const UnitStructure& structure, int products);

/// The structure of a row of the table, as find_structure() would name it.
[[nodiscard]] UnitStructure structure_of(const MatrixUnit& unit);

/// What was seen of the structure.
struct StructureFinding {
  std::optional<UnitStructure> structure;  ///< nothing: no structure gives what was seen
  /// The range of numbers is too small to hide one product by another: the order of blocks and
  /// whether c comes last are not seen.
  bool blocks_only = false;
};

/// Hides products by two others that cancel, or, where numbers do not reach that far, adds halves
/// of a unit in the last place to a large c, and looks which structure gives every result.
[[nodiscard]] Result<StructureFinding> find_structure(UnitUnderTest& unit);

}  // namespace kvsim::gpu
