// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/output.h"
#include "cli/predict/attention_inputs.h"
#include "sim/predict/orders.h"

/// The tables of the study of summation orders.
namespace kvsim::order_study_tables {

/// Whether an error has no figures: they leave out what is infinite or NaN, and every element is.
[[nodiscard]] bool all_overflow(const ErrorSummary& error);

/// What was asked: shape, inputs and formats.
[[nodiscard]] Table settings(const OrderStudy& study, const GivenAttention& inputs);
/// The error of each stage in each order, with every column that JSON has.
[[nodiscard]] Table stages(const OrderStudy& study);
/// The error of each control on attention as a whole, likewise.
[[nodiscard]] Table controls(const OrderStudy& study);
/// Output elements that differ between two orders: one row and one column for each order.
[[nodiscard]] Table differences(const OrderStudy& study);
/// The stages before the output: the pair of orders that differs most.
[[nodiscard]] Table stage_differences(const OrderStudy& study);

}  // namespace kvsim::order_study_tables
