// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fuzz/property/property.h"
#include "sim/decoder/plants.h"
#include "softfloat/mutants.h"

/// The faults that the properties must find: those of softfloat/mutants.h, which only a build with
/// KVSIM_MUTANTS has, and the plants of a decoder, which every build has.
namespace kvsim::fuzz {

/// The last one of softfloat/mutants.h: every one up to it has a row.
inline constexpr Mutant last_mutant = Mutant::newline_lost;

/// One row: a fault, and a property that it violates. Faults that several properties must find have
/// several rows.
struct MutantRow {
  Mutant mutant = Mutant::none;
  Plant plant = Plant::none;
  std::string_view name;  ///< "ties-away"; a plant's own name
  std::string_view
      area;  ///< "softfloat", "units", "orders", "attention", "decoder", "runs", "texts"
  std::string_view does;       ///< what is wrong, one line without a full stop
  std::string_view killed_by;  ///< name of the property
};

/// Every row, area by area.
[[nodiscard]] std::span<const MutantRow> mutant_rows();

/// Runs the row's property with the fault, at most so many times, from run 0 on. Nothing where no
/// run violates it, or where this build has no mutants.
[[nodiscard]] std::optional<PropertyTally> kill(const MutantRow& row, std::uint64_t seed,
                                                std::int64_t most_runs);

}  // namespace kvsim::fuzz
