// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

#include "run/arm.h"
#include "run/sim_engine.h"
#include "sim/decoder/plants.h"
#include "sim/dispatch_choice.h"
#include "softfloat/result.h"

namespace kvsim {

/// What an arm's settings say to the simulator.
struct SimSettings {
  DispatchChoice dispatch;
  Plant plant = Plant::none;
  /// Of the dispatch, and behind "+" each line that was set; behind rope=NAME the detail of NAME.
  std::string name;
  const RopeOrigin* rope_origin = nullptr;  ///< null: the dispatch's kernel makes RoPE's factors
};

/// Reads the settings of an arm, as make_sim_engine() has them; the result refers to the origins.
/// Errors (usage).
[[nodiscard]] Result<SimSettings> sim_settings(std::span<const ArmSetting> settings,
                                               std::string_view default_dispatch,
                                               std::span<const RopeOrigin> rope_origins = {});

}  // namespace kvsim
