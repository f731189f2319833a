// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "run/engine.h"
#include "run/sim_launch.h"
#include "sim/decoder/formats.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch_choice.h"

namespace kvsim {

/// The operators of one layer and of the output in a pass, with the line of the dispatch that
/// counts for each, as DispatchChoice::set() takes it.
[[nodiscard]] std::vector<ExplainedOperator> explain_pass(const DecoderShape& shape,
                                                          const DispatchChoice& dispatch,
                                                          const DecoderFormats& formats,
                                                          const PassLaunch& pass);

}  // namespace kvsim
