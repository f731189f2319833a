// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "softfloat/formats.h"

namespace kvsim::softfloat {

/// Checks each code of a format of at most 22 bits: its bits, hex-float, shortest and exact decimal
/// read back to it; the hex-float is what "%a" prints, the exact decimal has the digits of
/// "%.300e", and the shortest is what a search over all shorter decimals with the oracle's reader
/// finds. A negative code prints as its positive one with a sign. Stops at the first failure.
void check_every_code(const NamedFormat& row);

}  // namespace kvsim::softfloat
