// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <string>

#include "run/arm.h"
#include "sim/decoder/plants.h"
#include "sim/dispatch_choice.h"
#include "softfloat/result.h"

namespace kvsim {

/// What an arm's settings say to the simulator.
struct SimSettings {
  DispatchChoice dispatch;
  Plant plant = Plant::none;
  std::string name;  ///< of the dispatch, and behind "+" each line that was set
};

/// Reads the settings of an arm, as make_sim_engine() has them. Errors (usage).
[[nodiscard]] Result<SimSettings> sim_settings(std::span<const ArmSetting> settings,
                                               std::string_view default_dispatch);

}  // namespace kvsim
