// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/output.h"
#include "cli/predict/attention_inputs.h"
#include "sim/predict/orders.h"

namespace kvsim {

/// Tables, headline and JSON of a study.
[[nodiscard]] Report order_study_report(const OrderStudy& study, const GivenAttention& inputs);

}  // namespace kvsim
