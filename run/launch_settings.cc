// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/launch_settings.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

constexpr std::int64_t largest_batch = 1024;
constexpr std::int64_t largest_width = 64;

constexpr std::array<std::pair<std::string_view, Padding>, 3> paddings{
    {{"none", Padding::none}, {"left", Padding::left}, {"right", Padding::right}}};

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t largest) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < 1 || value > largest) return std::nullopt;
  return value;
}

Error refuse(std::string_view what, std::string_view text, std::string_view accepted) {
  return {ErrorKind::usage, fmt::format("{} is {}; accepted: {}", what, quote(text), accepted)};
}

/// True where the setting is one of those, and was taken.
Result<bool> take(const ArmSetting& setting, PreparedArm& arm) {
  if (setting.key == "batch") {
    arm.launch.neighbours.clear();
    if (setting.value == "alone") return true;
    arm.batch = whole_number(setting.value, largest_batch);
    if (arm.batch) return true;
    return refuse(setting.key, setting.value, fmt::format("alone, or 1 to {}", largest_batch));
  }
  if (setting.key == "padding") {
    const Result<Padding> padding = parse_padding(setting.key, setting.value);
    if (!padding) return padding.error();
    arm.launch.padding = *padding;
    return true;
  }
  if (setting.key == "verify-width") {
    const std::optional<std::int64_t> width = whole_number(setting.value, largest_width);
    if (!width) return refuse(setting.key, setting.value, fmt::format("1 to {}", largest_width));
    arm.launch.verify_width = *width;
    return true;
  }
  return false;
}

}  // namespace

std::string_view to_string(Padding padding) {
  return paddings.at(static_cast<std::size_t>(padding)).first;
}

Result<Padding> parse_padding(std::string_view what, std::string_view text) {
  for (const auto& [name, padding] : paddings) {
    if (name == text) return padding;
  }
  return refuse(what, text, "none, left, right");
}

Result<bool> take_launch_settings(std::vector<ArmSetting>& settings, PreparedArm& arm) {
  std::vector<ArmSetting> left;
  left.reserve(settings.size());
  for (ArmSetting& setting : settings) {
    const Result<bool> taken = take(setting, arm);
    if (!taken) return taken.error();
    if (!*taken) left.push_back(std::move(setting));
  }
  settings = std::move(left);
  return true;
}

Launch PreparedArm::launch_of(std::int64_t prompt_tokens) const {
  Launch result = launch;
  result.prompt_tokens = prompt_tokens;
  if (batch) result.neighbours.assign(static_cast<std::size_t>(*batch - 1), prompt_tokens);
  return result;
}

}  // namespace kvsim
