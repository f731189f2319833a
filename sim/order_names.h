// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "sim/order.h"

/// The words of the order grammar, shared by its parser and its printer, and how errors quote
/// input.
namespace kvsim::order_names {

/// Names of OrderKind, LaneJoin, LaneTail and MergeOrder, indexed by their values.
inline constexpr std::array<std::string_view, 13> kinds = {
    "sequential", "reverse", "perm", "exact",          "pairwise",      "halving",  "lanes",
    "blocks",     "split",   "mma",  "numpy-pairwise", "torch-cascade", "torch-dot"};
inline constexpr std::array<std::string_view, 4> joins = {"pairwise", "halving", "sequential",
                                                          "butterfly"};
inline constexpr std::array<std::string_view, 4> tails = {"masked", "scalar", "scalar-first",
                                                          "first-lane"};
inline constexpr std::array<std::string_view, 5> merges = {"sequential", "reverse", "pairwise",
                                                           "halving", "butterfly"};

constexpr std::string_view name(OrderKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name(LaneJoin join) { return joins[static_cast<std::size_t>(join)]; }
constexpr std::string_view name(LaneTail tail) { return tails[static_cast<std::size_t>(tail)]; }
constexpr std::string_view name(MergeOrder merge) {
  return merges[static_cast<std::size_t>(merge)];
}

/// The text in quotes for an error message: printable characters only, on one line, cut after 24.
std::string quoted(std::string_view text);

}  // namespace kvsim::order_names
