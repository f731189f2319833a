// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/flip/random.h"
#include "sim/decoder/plants.h"
#include "softfloat/result.h"

/// What must hold for every input, checked on random ones.
namespace kvsim::fuzz {

/// What one run draws its input from.
struct PropertyInput {
  Random random;
  Plant plant = Plant::none;  ///< built into every decoder that the property runs
};

/// Why the property does not hold for that input, one line; nothing where it holds.
using Violation = std::optional<std::string>;

/// One row: a property, and the function that draws an input and looks.
struct Property {
  std::string_view name;    ///< "engine-is-reference"
  std::string_view says;    ///< what holds, one sentence without a full stop
  std::string_view source;  ///< who states it, or why it must hold
  Violation (*check)(PropertyInput& input);
  bool is_canary = false;  ///< does not hold, and so must be seen to fail
};

/// Every property by group: arithmetic, sums, units, attention, decoders, runs, texts; the canary
/// is the last one.
[[nodiscard]] std::span<const Property> properties();

/// The property of that name. An error (usage) names the text and the near name.
[[nodiscard]] Result<const Property*> find_property(std::string_view name);

inline constexpr std::int64_t most_property_runs = std::int64_t{1} << 31;  ///< numbers of runs

/// Which runs: equal (property, seed, run) give equal inputs, whatever ran before.
struct PropertyRuns {
  std::uint64_t seed = 0;
  std::int64_t first = 0;  ///< number of the first run
  std::int64_t count = 1;
  Plant plant = Plant::none;
};

/// What became of them.
struct PropertyTally {
  std::int64_t runs = 0;  ///< made, the violating one included
  Violation violation;    ///< of the last run; runs end with the first one
};

/// Makes the runs until one violates the property, or `go_on`, asked after each, says no. `go_on`
/// may be empty.
[[nodiscard]] PropertyTally run_property(const Property& property, const PropertyRuns& runs,
                                         const std::function<bool()>& go_on = {});

/// A run that is to be repeated.
struct PropertyCase {
  std::string property;
  std::uint64_t seed = 0;
  std::int64_t run = 0;
  Plant plant = Plant::none;

  friend bool operator==(const PropertyCase&, const PropertyCase&) = default;
};

inline constexpr std::string_view property_case_line = "kvsim property case 1";  ///< its first line

/// The text of a case, in lines; `reason` is a comment.
[[nodiscard]] std::string to_text(const PropertyCase& run, std::string_view reason);

/// Reads it. Errors (file) name the line, what stands there and what is accepted.
[[nodiscard]] Result<PropertyCase> parse_property_case(std::string_view text);

}  // namespace kvsim::fuzz
