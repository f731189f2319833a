// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/output.h"
#include "cli/predict_inputs.h"
#include "sim/predict.h"

namespace kvsim {

/// Tables, headline and JSON of a prediction.
[[nodiscard]] Report prediction_report(const PredictReport& prediction,
                                       const PredictInputs& inputs);

}  // namespace kvsim
