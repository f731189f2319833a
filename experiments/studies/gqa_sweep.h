// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim::experiments {

/// One size of the seeded decoders that is set apart from the others.
struct GqaSweep {
  std::string_view part;  ///< of units: "R 4" is the value 4 of the part "R"
  std::array<std::int64_t, 4> values;
};
/// Query heads for each K/V head, and elements of a head; everything else is equal.
inline constexpr std::array gqa_sweeps{GqaSweep{"R", {1, 2, 4, 8}},
                                       GqaSweep{"head_dim", {32, 64, 128, 256}}};
/// Seeds of the weights and of the first hidden states.
inline constexpr std::int64_t gqa_seeds = 5;

/// The unit of a value, and back. Nothing for other parts.
[[nodiscard]] std::string sweep_part(const GqaSweep& sweep, std::int64_t value);
struct SweepPlace {
  const GqaSweep* sweep = nullptr;
  std::int64_t value = 0;
};
[[nodiscard]] std::optional<SweepPlace> sweep_place(std::string_view part);

/// Rows that a seeded decoder computes, about, for an estimate of time.
inline constexpr std::int64_t gqa_rows = 300;

/// The decoder with the cache against without it, layer by layer; for R also what sharing does to
/// the errors of attention. Errors of run_decoder().
[[nodiscard]] Result<Json> measure_sweep(const StudySetup& setup, const SweepPlace& place,
                                         std::uint64_t seed);

}  // namespace kvsim::experiments
