// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/simd_level.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "sim/engine/column_kernel.h"

namespace kvsim {
namespace {

constexpr std::array all_levels{SimdLevel::scalar, SimdLevel::avx2, SimdLevel::avx512};

std::string available_names() {
  std::vector<std::string_view> names;
  for (const SimdLevel level : list_simd_levels()) names.push_back(simd_level_name(level));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string_view simd_level_name(SimdLevel level) {
  switch (level) {
    case SimdLevel::scalar:
      return "scalar";
    case SimdLevel::avx2:
      return "avx2";
    case SimdLevel::avx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<SimdLevel> list_simd_levels() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel level : all_levels) {
    if (engine::column_kernel(level) != nullptr) levels.push_back(level);
  }
  return levels;
}

SimdLevel best_simd_level() {
  static const SimdLevel best = list_simd_levels().back();  // a default argument of many calls
  return best;
}

Result<SimdLevel> select_simd_level(std::string_view name) {
  if (name.empty() || name == "auto") return best_simd_level();
  const auto* const found =
      std::find_if(all_levels.begin(), all_levels.end(),
                   [&](SimdLevel level) { return simd_level_name(level) == name; });
  if (found == all_levels.end()) {
    return Error{
        ErrorKind::usage,
        fmt::format("SIMD level '{}' is unknown; accepted: auto, avx512, avx2, scalar", name)};
  }
  if (engine::column_kernel(*found) == nullptr) {
    return Error{ErrorKind::unavailable,
                 fmt::format("SIMD level '{}' is not available on this CPU; available: {}", name,
                             available_names())};
  }
  return *found;
}

}  // namespace kvsim
