// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <string_view>

#include "cli/command.h"
#include "cli/options.h"
#include "softfloat/result.h"

namespace kvsim {

/// The option that asks for the study of summation orders, --order for instance; nothing where none
/// is given.
[[nodiscard]] std::optional<std::string_view> order_study_option(const ParsedOptions& options);

/// One attention layer under several orders of summation, stage by stage (sim/predict/orders.h).
/// Errors: of its options, and of the options of the other parts, which do not go with it.
[[nodiscard]] Result<Answer> run_order_study(const ParsedOptions& options);

}  // namespace kvsim
