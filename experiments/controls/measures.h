// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/controls/control.h"
#include "experiments/setup.h"

/// What every control measures of one prompt, and how its figures are judged. ControlRow says what
/// each means.
namespace kvsim::experiments {

// Equal bits: control_bits.cc.
[[nodiscard]] Result<Json> measure_replica(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_replica(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_identity(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_identity(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_exact_sums(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_exact_sums(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_constructors(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_constructors(const ControlRecords& records);

// How far apart: control_divergence.cc.
[[nodiscard]] Result<Json> measure_forced(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_forced(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_plateau(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_plateau(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_drift(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_drift(const ControlRecords& records);

// Which token: control_tokens.cc.
[[nodiscard]] Result<Json> measure_flips(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_flips(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_sampling(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_sampling(const ControlRecords& records);

// Other arithmetic: control_grid.cc.
[[nodiscard]] Result<Json> measure_storage(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_storage(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_order(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_order(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_cells(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_cells(const ControlRecords& records);

// Other state: control_state.cc.
[[nodiscard]] Result<Json> measure_transplant(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_transplant(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_noise(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_noise(const ControlRecords& records);

// Defects on purpose, and attention alone: control_defects.cc, control_heads.cc.
[[nodiscard]] Result<Json> measure_defects(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_defects(const ControlRecords& records);
[[nodiscard]] Result<Json> measure_heads(const StudySetup& setup, std::int64_t prompt);
[[nodiscard]] ControlVerdict judge_heads(const ControlRecords& records);

/// The values of a control that were measured; the reasons of the others go to the verdict, each
/// once.
[[nodiscard]] std::vector<const Json*> measured_values(const ControlRecords& records, int number,
                                                       ControlVerdict& verdict);
/// Adds a reason why a part of the control, or all of it ("") is not applicable, each once.
void add_reason(ControlVerdict& verdict, std::string_view part, std::string_view reason);
/// All numbers of the arrays under this key.
[[nodiscard]] std::vector<double> numbers_of(std::span<const Json* const> values, const char* key);
/// Their mean; 0 of none.
[[nodiscard]] double mean_of(std::span<const double> numbers);

/// What rounding explains between two arms.
struct Rounding {
  double predicted = 0;         ///< by predict, of two errors that know nothing of each other
  double allowed = 0;           ///< above that it is a defect
  std::optional<double> floor;  ///< as `allowed`, but of what each arm was measured to be off by
};

/// How far apart, squared, errors of these squares can be: two errors a and b are at most
/// √(2 |a|² + 2 |b|²) apart.
[[nodiscard]] double apart_square(double on, double off);
/// The same of errors that were measured. Each arm is taken to be no worse than the other one says,
/// scaled by the square of `ratio`, on's unit roundoff over off's: so a defect of one arm does not
/// widen the floor.
[[nodiscard]] double measured_apart_square(double on, double off, double ratio);

/// The mean KL that rounding explains between the two arms, of what control 3 has recorded: KL is
/// quadratic in the error, so it adds up as squares do, and is allowed the square of
/// weights_allowance(). Nothing where there is no prediction.
[[nodiscard]] std::optional<Rounding> rounding_kl(const ControlRecords& records);

}  // namespace kvsim::experiments
