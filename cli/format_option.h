// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string_view>

#include "softfloat/formats.h"
#include "softfloat/result.h"

namespace kvsim {

/// The row of the format that `text` names. The error names `what` (an option or an operand), the
/// text, the accepted formats and the near one.
[[nodiscard]] Result<const softfloat::NamedFormat*> format_named(std::string_view what,
                                                                 std::string_view text);

}  // namespace kvsim
