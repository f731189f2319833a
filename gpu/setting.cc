// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/setting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace kvsim::gpu {
namespace {

// Intel, oneMKL Developer Reference, "Instruction Set Specific Dispatching: MKL_CBWR" (2024);
// pytorch/pytorch aten/src/ATen/native/DispatchStub.cpp (2.11).
constexpr EnvironmentVariable pinned[] = {{"MKL_CBWR", "AVX2"}, {"ATEN_CPU_CAPABILITY", "avx2"}};

constexpr SettingRow rows[] = {
    {"installed", "the environment as it is", {}, true},
    {"pinned", "MKL and ATen for AVX2, oneDNN off", pinned, false},
};

const SettingRow* current = rows;
bool fixed = false;

}  // namespace

std::span<const SettingRow> setting_rows() { return rows; }

const SettingRow& current_setting() { return *current; }

Result<bool> apply_setting(std::string_view name) {
  const auto* const row = std::find_if(std::begin(rows), std::end(rows),
                                       [&](const SettingRow& known) { return known.name == name; });
  if (row == std::end(rows)) {
    return Error{ErrorKind::usage,
                 fmt::format("no setting is called '{:.40}'; there are installed, pinned", name)};
  }
  if (row == current) return true;
  if (fixed) {
    return Error{ErrorKind::usage, fmt::format("libtorch was loaded under the setting {}: {} comes "
                                               "too late",
                                               current->name, name)};
  }
  for (const EnvironmentVariable& variable : row->variables) {
    if (setenv(std::string(variable.name).c_str(), std::string(variable.value).c_str(), 1) != 0) {
      return Error{ErrorKind::file, fmt::format("cannot set {} in the environment", variable.name)};
    }
  }
  current = row;
  return true;
}

void fix_setting() { fixed = true; }

}  // namespace kvsim::gpu
