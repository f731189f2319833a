// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/reveal/positive_model.h"
#include "gpu/reveal/positive_operator.h"
#include "gpu/reveal/positive_reveal.h"
#include "gpu/reveal/positive_rows.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Rows for a check and what the back end gave for them.
struct PositiveObservation {
  std::vector<float> x;
  std::vector<float> weight;  ///< of a norm; empty: none
  std::optional<double> epsilon;
  std::vector<float> out;
};

/// What the numbers of a row look like.
enum class PositiveData : std::uint8_t {
  gaussian,    ///< scores of deviation 3; x of deviation 1, with weights
  wide,        ///< terms over 29 binades, in a norm over 16
  absorption,  ///< AbsorptionRows::random_rows()
};

/// `count` rows, a function of (data, seed, number) and the shape. `absorption` may be null for the
/// other kinds.
[[nodiscard]] Result<std::vector<float>> positive_rows(const PositiveOperator& of,
                                                       const AbsorptionRows* absorption,
                                                       PositiveData data, std::int64_t count,
                                                       std::uint64_t seed, std::uint64_t number);

/// Calls of all kinds, at least `outputs` results and 64 rows of each kind, 512 of the last. Where
/// `weights` is set, gaussian rows are multiplied by some.
struct PositiveAmount {
  std::int64_t outputs = 10000;
  bool weights = false;
};
[[nodiscard]] Result<std::vector<PositiveObservation>> observe(PositiveOperator& of,
                                                               const AbsorptionRows* absorption,
                                                               const PositiveAmount& amount,
                                                               std::uint64_t seed,
                                                               std::uint64_t number);

/// How many results differ in any bit, and the first of them.
struct PositiveComparison {
  std::int64_t compared = 0;
  std::int64_t rows = 0;
  std::int64_t different = 0;
  std::size_t observation = 0;  ///< of the first difference
  std::int64_t row = -1;
  std::int64_t column = -1;
};
/// Stops behind the first observation with more differences than `enough`.
[[nodiscard]] Result<PositiveComparison> compare(const PositiveModel& model, std::int64_t terms,
                                                 std::span<const PositiveObservation> observations,
                                                 std::int64_t enough);

/// The first difference with as many elements as possible without weight.
[[nodiscard]] Result<FailingRow> shrink(PositiveOperator& of, const PositiveModel& model,
                                        const PositiveObservation& observation,
                                        const PositiveComparison& comparison);

}  // namespace kvsim::gpu
