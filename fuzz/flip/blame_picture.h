// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "fuzz/flip/blame.h"
#include "fuzz/flip/case.h"

namespace kvsim::fuzz {

/// A blame as an SVG drawing. Of a sum: the trees of the tokens of which a rounding decides, sums
/// as dots. Of attention: for each query head a table of steps and blocks of keys. What decides is
/// red and says its error; other roundings are the darker, the more they add to the path's error.
[[nodiscard]] std::string blame_picture(const FlipCase& flip_case, const Blame& blame);

}  // namespace kvsim::fuzz
