// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/model_places.h"

#include <cstdlib>
#include <string>

namespace kvsim {
namespace {

std::string absolute_path(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? std::string(value) : std::string();
}

std::string cache_folder() {
  if (std::string own = absolute_path("KVSIM_CACHE"); !own.empty()) return own;
  if (const std::string shared = absolute_path("XDG_CACHE_HOME"); !shared.empty()) {
    return shared + "/kvsim";
  }
  if (const std::string home = absolute_path("HOME"); !home.empty()) return home + "/.cache/kvsim";
  return {};
}

}  // namespace

ModelPlaces model_places() { return {KVSIM_REPOSITORY, cache_folder()}; }

std::string plan_folder() { return KVSIM_REPOSITORY "/data/plans"; }

std::string script_path(std::string_view name) {
  return std::string(KVSIM_REPOSITORY "/scripts/").append(name);
}

}  // namespace kvsim
