// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "run/engine.h"
#include "run/sim_launch.h"
#include "sim/decoder/formats.h"
#include "sim/decoder/weights_view.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch_choice.h"

namespace kvsim {

/// operator_choices() of a pass, and the formats that hold between operators; each with its line of
/// the dispatch, as DispatchChoice::set() takes it. Errors of operator_choices().
[[nodiscard]] Result<std::vector<ExplainedOperator>> explain_pass(
    const DecoderShape& shape, const DispatchChoice& dispatch, const DecoderFormats& formats,
    const softfloat::Format& storage, const DecoderWeights& weights, const PassLaunch& pass);

}  // namespace kvsim
