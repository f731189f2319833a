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

/// Names of OrderKind, LaneJoin and LaneTail, indexed by their values.
inline constexpr std::array<std::string_view, 9> kinds = {
    "sequential", "reverse", "perm", "exact", "pairwise", "halving", "lanes", "blocks", "split"};
inline constexpr std::array<std::string_view, 3> joins = {"pairwise", "halving", "sequential"};
inline constexpr std::array<std::string_view, 3> tails = {"masked", "scalar", "scalar-first"};

constexpr std::string_view name(OrderKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
constexpr std::string_view name(LaneJoin join) { return joins[static_cast<std::size_t>(join)]; }
constexpr std::string_view name(LaneTail tail) { return tails[static_cast<std::size_t>(tail)]; }

/// The text in quotes for an error message: printable characters only, on one line, cut after 24.
std::string quoted(std::string_view text);

}  // namespace kvsim::order_names
