// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cli/options.h"
#include "model/checkpoint.h"
#include "run/arm.h"
#include "run/engine.h"
#include "sim/engine/columns.h"
#include "softfloat/result.h"

namespace kvsim {

/// The options that say what computes a model.
[[nodiscard]] std::span<const OptionSpec> engine_option_rows();

/// Reads --engine and --setting, and applies the setting. Holds the engine's name. Errors: a name
/// that there is none of, --setting where nothing asks for libtorch (usage); an engine, or what an
/// arm's rope=NAME takes its factors from, that is not here, with how to get it (unavailable).
[[nodiscard]] Result<std::string> chosen_engine(const ParsedOptions& options,
                                                std::span<const Arm> arms);

/// The engine of that name. `simulated`: how the simulator computes. Errors of the makers.
[[nodiscard]] Result<std::unique_ptr<Engine>> make_engine(std::string_view name,
                                                          Checkpoint checkpoint,
                                                          const std::string& model,
                                                          const EngineOptions& simulated);

}  // namespace kvsim
