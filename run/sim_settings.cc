// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "model/quote.h"

namespace kvsim {
namespace {

/// Short names of lines.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> short_names{
    {{"storage", "format.activations"},
     {"weights", "format.weights"},
     {"kv", "format.kv"},
     {"head", "format.logits"}}};

std::string_view line_of(std::string_view key) {
  const auto found = std::find_if(short_names.begin(), short_names.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  return found == short_names.end() ? key : found->second;
}

Error unknown_key(std::string_view key, const DispatchChoice& dispatch) {
  std::string lines;
  for (const DispatchLine& line : dispatch.lines()) lines += ", " + line.operation;
  return {
      ErrorKind::usage,
      fmt::format("setting {}; accepted: dispatch, plant, storage, weights, kv, head, kv-heads, "
                  "batch, padding, verify-width{}",
                  quote(key), lines)};
}

/// rope=VALUE: the name of an origin or of a kernel.
Result<bool> set_rope(SimSettings& settings, std::string_view value,
                      std::span<const RopeOrigin> origins) {
  const bool names_kernels = settings.dispatch.dispatch().arithmetic == DispatchArithmetic::kernels;
  const auto origin = std::ranges::find(origins, value, &RopeOrigin::name);
  if (origin == origins.end() || !names_kernels) {
    Result<bool> done = settings.dispatch.set("rope", value);
    if (done) settings.name += fmt::format("+rope={}", value);
    if (done || !names_kernels) return done;
    Error error = done.error();
    for (const RopeOrigin& other : origins) {
      error.message += fmt::format("; factors of a back end: {}", other.name);
    }
    return error;
  }
  settings.rope_origin = &*origin;
  settings.name += fmt::format("+rope={}", value);
  if (!origin->detail.empty()) settings.name += "+" + origin->detail;
  return true;
}

}  // namespace

Result<SimSettings> sim_settings(std::span<const ArmSetting> settings,
                                 std::string_view default_dispatch,
                                 std::span<const RopeOrigin> rope_origins) {
  std::string_view set = default_dispatch;
  for (const ArmSetting& setting : settings) {
    if (setting.key == "dispatch") set = setting.value;
  }
  Result<DispatchChoice> dispatch = DispatchChoice::named(set);
  if (!dispatch) return dispatch.error();
  SimSettings result{std::move(*dispatch), Plant::none, {}};
  result.name = result.dispatch.name();
  for (const ArmSetting& setting : settings) {
    if (setting.key == "dispatch") continue;
    if (setting.key == "plant") {
      const Result<Plant> plant = find_plant(setting.value);
      if (!plant) return plant.error();
      result.plant = *plant;
      continue;
    }
    const std::string_view line = line_of(setting.key);
    if (!DispatchChoice::is_line(line)) return unknown_key(setting.key, result.dispatch);
    if (line == "rope") {
      if (const auto done = set_rope(result, setting.value, rope_origins); !done) {
        return done.error();
      }
      continue;
    }
    const Result<bool> done = result.dispatch.set(line, setting.value);
    if (!done) return done.error();
    result.name += fmt::format("+{}={}", line, setting.value);
  }
  if (result.rope_origin != nullptr && result.plant == Plant::rope_table_16_bit) {
    return Error{ErrorKind::usage,
                 fmt::format("plant={} with rope={}; accepted: with the factors of a kernel",
                             to_string(result.plant), result.rope_origin->name)};
  }
  return result;
}

}  // namespace kvsim
