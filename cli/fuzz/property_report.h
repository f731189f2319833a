// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "fuzz/property/property.h"

namespace kvsim {

/// What became of one property.
struct PropertyResult {
  const fuzz::Property* property = nullptr;
  fuzz::PropertyTally tally;
  fuzz::PropertyCase last;  ///< its last run: the violating one where there is one
  std::string file;         ///< where that was written to; may be empty

  /// Whether this result makes the command fail: a violation, or a canary among all properties
  /// that was not seen to fail.
  bool fails = false;
};

/// What `kvsim fuzz property list` answers.
[[nodiscard]] Report property_list_report();

/// What `kvsim fuzz property` answers.
[[nodiscard]] Report property_report(const std::string& name, std::uint64_t seed,
                                     const std::vector<PropertyResult>& results);

/// What `kvsim fuzz replay` answers about a run of a property.
[[nodiscard]] Report property_replay_report(const std::string& path, const fuzz::PropertyCase& run,
                                            const fuzz::PropertyTally& tally);

}  // namespace kvsim
