// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/torch/decoder.h"
#include "run/arm.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// What an arm's settings say to libtorch.
struct TorchSettings {
  AttentionFunction attention = AttentionFunction::sdpa;
  softfloat::Format storage;
  std::int64_t threads = 1;
  std::string name;  ///< "eager", and behind "+" each other setting: "eager+storage=binary32"
};

/// "eager", "sdpa", "sdpa-flash" or "sdpa-math".
[[nodiscard]] std::string_view to_string(AttentionFunction attention);

/// What settings may be, beside themselves.
struct TorchLimits {
  softfloat::Format storage;  ///< of an arm that sets none
  bool has_soft_cap = false;  ///< of scores, which only eager attention computes
  bool on_cuda = false;
};

/// Reads the settings of an arm, as make_torch_engine() has them. Errors (usage).
[[nodiscard]] Result<TorchSettings> torch_settings(std::span<const ArmSetting> settings,
                                                   const TorchLimits& limits);

}  // namespace kvsim::gpu
