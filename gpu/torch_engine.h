// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/checkpoint.h"
#include "run/engine.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Names of libtorch as an engine.
inline constexpr std::string_view torch_cpu_engine_name = "torch-cpu";
inline constexpr std::string_view torch_cuda_engine_name = "torch-cuda";

/// A checkpoint on libtorch, which computes it as transformers does. `name` is one of the two
/// above, `model` is how records call the checkpoint. Settings of its arms:
///   attention=eager|sdpa|sdpa-flash|sdpa-math   default sdpa, eager where scores have a soft cap
///   storage=FORMAT    bfloat16, binary16, binary32 or binary64; default the checkpoint's own
///   threads=N         of one pass, 1 to 1024, default 1; may change bits
/// The head computes the last row alone, as transformers' generate() does. Sequences are computed
/// one by one: a batch is refused. An arm's dispatch names current_setting() where that is not
/// "installed". Reads every weight once. Errors: of torch_library() (unavailable), a weight that is
/// NaN or infinite (file), a shape that the decoder does not have (usage); arms may fail as
/// MakeTorchModel does.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_torch_engine(std::string_view name,
                                                                Checkpoint checkpoint,
                                                                std::string model);

}  // namespace kvsim::gpu
