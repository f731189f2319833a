// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint.h"
#include "model/config.h"
#include "run/engine.h"
#include "sim/decoder/rope_source.h"
#include "sim/engine/columns.h"
#include "softfloat/format.h"
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

/// A back end whose RoPE factors an arm takes as data, with rope=NAME, instead of those of a
/// kernel.
struct RopeOrigin {
  std::string name;    ///< "torch-cpu"
  std::string detail;  ///< what records say of it behind its name: "setting=pinned"; may be empty
  /// The factors of a model in a format. They are a function of model, format and position alone.
  /// An error where the back end is not here (unavailable), or lacks the format (usage).
  std::function<Result<RopeSource>(const ModelConfig& config, const softfloat::Format& storage)>
      open;
};

/// A checkpoint on the simulator. `model` is how records call it; `options` change no bit. Settings
/// of its arms: `dispatch=NAME` and the lines of DispatchChoice; `rope` may name one of
/// `rope_origins`, too; `plant=NAME` (sim/decoder/plants.h); `storage`, `weights`, `kv` and
/// `head`=FORMAT, which are format.activations, format.weights, format.kv and format.logits;
/// `kv-heads=repeated` (run/repeated_heads.h). Reads every weight once. Errors: a weight that is
/// NaN or infinite (file), a shape that the decoder does not have (usage); an arm's are those of
/// its origin, too.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_sim_engine(
    Checkpoint checkpoint, std::string model, const EngineOptions& options,
    CommonRows rows = CommonRows::kept, std::vector<RopeOrigin> rope_origins = {});

}  // namespace kvsim
