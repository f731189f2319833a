// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/predict/orders.h"
#include "softfloat/result.h"

namespace kvsim {

/// Holds true where study_orders() accepts the options, otherwise its error (usage).
[[nodiscard]] Result<bool> check_order_study(const OrderStudyOptions& options);

}  // namespace kvsim
