// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/control.h"

#include <algorithm>

namespace kvsim::experiments {

std::string_view to_string(ControlOutcome outcome) {
  switch (outcome) {
    case ControlOutcome::green:
      return "green";
    case ControlOutcome::failed:
      return "failed";
    case ControlOutcome::not_applicable:
      break;
  }
  return "not applicable";
}

ControlOutcome ControlVerdict::outcome() const {
  if (checks.empty()) return ControlOutcome::not_applicable;
  return std::ranges::all_of(checks, &ControlCheck::passed) ? ControlOutcome::green
                                                            : ControlOutcome::failed;
}

const ControlCheck* ControlVerdict::decisive() const {
  const auto failed = std::ranges::find_if_not(checks, &ControlCheck::passed);
  if (failed != checks.end()) return &*failed;
  return checks.empty() ? nullptr : &checks.front();
}

Json not_applicable(std::string_view reason) { return {{"not_applicable", std::string(reason)}}; }

std::optional<std::string> reason_of(const Json& values) {
  const auto found = values.find("not_applicable");
  if (found == values.end()) return {};
  return found->get<std::string>();
}

}  // namespace kvsim::experiments
