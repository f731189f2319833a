// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/controls/control.h"
#include "experiments/setup.h"
#include "softfloat/result.h"

/// Cells: one arithmetic each, how far it is from a reference, and how far predict says it is.
namespace kvsim::experiments {

/// How far one arm is from another along a text.
struct Distance {
  double square = 0;  ///< mean over steps and tokens of |difference|²
  double kl = 0;      ///< mean over steps, KL(first ‖ second)
};

/// Two arms along the text of a third.
struct CellArms {
  const StudyArm* text = nullptr;
  const StudyArm* first = nullptr;
  const StudyArm* second = nullptr;
  bool second_rounds = false;  ///< the second one is no reference, but another of the same formats
};

/// What was measured of a cell, and what predict says of it.
struct CellDistance {
  Distance measured;
  Result<Distance> predicted;
};

/// Errors also where an arm computes something that is no number.
[[nodiscard]] Result<CellDistance> distance_of(const StudySetup& setup, std::int64_t prompt,
                                               const CellArms& arms);

/// An arithmetic: the first of the settings that the engine accepts, for the arm with the cache.
struct CellRow {
  std::string_view name;
  std::string_view family;  ///< cells of one are compared with each other
  int precision;            ///< p of the unit roundoff 2^−p that its error grows with; 0: any
  std::array<std::string_view, 2> settings;
};

/// Adds a cell: its distance from the other arm, or why there is none.
void add_cell(Json& cells, const CellRow& row, const Result<CellDistance>& distance);

/// The mean distances of a cell over the prompts.
struct CellFigures {
  std::string name;
  std::string family;
  int precision = 0;
  Distance measured;
  std::optional<Distance> predicted;  ///< none where predict has nothing to say
  double prompts = 0;
};

/// What becomes of the reasons of cells that could not be measured.
enum class Missing : std::uint8_t {
  said,        ///< every one goes to the verdict
  if_all_are,  ///< only where no cell of the family was measured: engines have different ones
};

/// The cells of a control's records.
[[nodiscard]] std::vector<CellFigures> cells_of(const ControlRecords& records, int number,
                                                Missing missing, ControlVerdict& verdict);

/// Checks that errors grow with the unit roundoff u as predict says, and KL as their square:
/// between the coarsest and the finest cell of a family, as a power of u. Each of the two errors
/// may miss its prediction by step_allowance(), in opposite directions: of few steps, one decides.
void check_scaling(const std::vector<CellFigures>& cells, std::string_view family,
                   ControlVerdict& verdict);

}  // namespace kvsim::experiments
