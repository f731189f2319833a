// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/checkpoint.h"
#include "run/engine.h"
#include "sim/engine/columns.h"
#include "softfloat/result.h"

namespace kvsim {

/// The name of the simulator as an engine.
inline constexpr std::string_view sim_engine_name = "sim";

/// The dispatch of an arm that names none: fp32 for float32 weights, else h100-fa3.
[[nodiscard]] std::string_view default_dispatch(const Checkpoint& checkpoint);

/// What becomes of rows that a pass from the start has in common with the pass before it, where the
/// dispatch gives them the same bits (IncrementalDecoder::keeps_rows()). Changes no bit and no byte
/// of a record; the one exception that can be thought of, the sign of an attention output that is
/// exactly zero, needs a layer whose every other product is zero, too.
enum class CommonRows : std::uint8_t {
  kept,        ///< they stay, and only the others are computed
  recomputed,  ///< everything is computed, as a real machine does
};

/// A checkpoint on the simulator. `model` is how records call it; `options` change no bit. Settings
/// of its arms: `dispatch=NAME` and the lines of DispatchChoice; `plant=NAME` (sim/decoder/
/// plants.h); `storage`, `weights`, `kv` and `head`=FORMAT, which are format.activations,
/// format.weights, format.kv and format.logits. Reads every weight once. Errors: a weight that is
/// NaN or infinite (file), a shape that the decoder does not have (usage).
[[nodiscard]] Result<std::unique_ptr<Engine>> make_sim_engine(Checkpoint checkpoint,
                                                              std::string model,
                                                              const EngineOptions& options,
                                                              CommonRows rows = CommonRows::kept);

}  // namespace kvsim
