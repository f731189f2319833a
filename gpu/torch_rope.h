// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "model/config.h"
#include "run/sim_engine.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The RoPE factors that libtorch computes for a model on the CPU under current_setting(), one
/// thread, in bfloat16, binary16 or binary32. Errors: of torch_library() (unavailable), another
/// format (usage); what the source gives may fail with what libtorch throws (file).
[[nodiscard]] Result<RopeSource> torch_rope_source(const ModelConfig& config,
                                                   const softfloat::Format& storage);

/// The same of the model that the shape is of.
[[nodiscard]] Result<RopeSource> torch_rope_source(const DecoderShape& shape,
                                                   const softfloat::Format& storage);

/// The same for the simulator's arms: rope=torch-cpu. Its detail names current_setting() where that
/// is not "installed".
[[nodiscard]] RopeOrigin torch_rope_origin();

}  // namespace kvsim::gpu
