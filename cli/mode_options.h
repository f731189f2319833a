// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/output.h"
#include "softfloat/result.h"
#include "softfloat/rounding.h"

namespace kvsim {

/// Reads --rounding, --random, --overflow, --subnormals and --tininess. Names are accepted in upper
/// or lower case, with or without '_' and '-'. Errors (usage): an unknown name; --random without
/// stochastic rounding, or stochastic rounding without --random.
[[nodiscard]] Result<softfloat::Mode> mode_from(const ParsedOptions& options);

/// The options that mode_from reads.
[[nodiscard]] std::span<const std::string_view> mode_option_names();

/// The canonical name of a rounding: "ties_to_even".
[[nodiscard]] std::string_view rounding_name(softfloat::Rounding rounding);

/// Adds the members rounding, random (stochastic only), overflow, subnormals and tininess.
void add_mode(Json& input, const softfloat::Mode& mode);

/// The names of the flags that are raised, in the order of IEEE 754-2019 clause 7.
[[nodiscard]] Json flags_json(const softfloat::Flags& flags);

/// The same for people: "overflow, inexact" or "none".
[[nodiscard]] std::string flags_text(const softfloat::Flags& flags);

}  // namespace kvsim
