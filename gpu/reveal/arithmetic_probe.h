// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/probe/property.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/tree_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// How a product was seen to enter its addition.
enum class ProductSeen : std::uint8_t {
  untested,
  fused,    ///< unrounded: one fused multiply-add
  rounded,  ///< rounded before; also the product that a sum starts with
};

/// In which direction a rounding was seen to go.
enum class RoundingSeen : std::uint8_t { unknown, nearest_even, nearest_away, toward_zero, other };

/// What becomes of subnormal numbers.
enum class SubnormalsSeen : std::uint8_t { unknown, kept, flushed };

[[nodiscard]] std::string_view to_string(RoundingSeen rounding);
[[nodiscard]] std::string_view to_string(SubnormalsSeen seen);

/// Nodes whose sums are rounded alike.
struct NodeRounding {
  int precision = 0;  ///< significand bits that a sum keeps; 0: not seen
  RoundingSeen rounding = RoundingSeen::unknown;
  std::int64_t nodes = 0;  ///< of those looked at

  friend bool operator==(const NodeRounding&, const NodeRounding&) = default;
};

/// What a tree does not tell: how it is computed.
struct ArithmeticFindings {
  /// "fused", "rounded", "mixed", or "not visible" where every product is exact anyway.
  std::string product = "not visible";
  std::vector<ProductSeen> products;  ///< by term; empty where they are exact
  std::vector<NodeRounding> sums;     ///< the most frequent first; the last addition is not seen
  std::int64_t fan_in = 0;            ///< terms that one fused node takes; 0: no such node
  std::optional<int> fraction_bits;   ///< of a fused node: bits kept below its largest term
  bool truncates_down = false;        ///< what is cut off goes down, not toward zero
  Seen zero_exponent;  ///< of a fused node: with which zero terms take part in its alignment
  /// Why it is not visible; empty where it is, or where there is no fused node.
  std::string_view why_no_zero_exponent;
  RoundingSeen output = RoundingSeen::unknown;  ///< of the sum to the output, where it is narrower
  SubnormalsSeen subnormal_factors = SubnormalsSeen::unknown;
  SubnormalsSeen subnormal_sums = SubnormalsSeen::unknown;
  std::int64_t calls = 0;
};

/// Asks with single terms: what is left of 1 + 2^−t − 1 at a node tells its precision, what is left
/// of a product less its rounded value whether it was fused, and so on. Formats of 8 bits and fewer
/// are too narrow for that: for them only the fan-in is given.
[[nodiscard]] Result<ArithmeticFindings> probe_arithmetic(Reduction& reduction,
                                                          const SumClass& sums,
                                                          const AdditionTree& tree);

}  // namespace kvsim::gpu
