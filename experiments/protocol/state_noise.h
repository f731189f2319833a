// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "run/engine.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Random changes of keys and values, in steps of their format.
namespace kvsim::experiments {

/// The number that lies `steps` numbers of the format above `value`, below it for negative ones; at
/// most the largest finite number on either side. `value` must be a finite number of the format.
[[nodiscard]] double stepped(const softfloat::Format& format, double value, std::int64_t steps);

/// Where random numbers come from: the same address, the same noise.
struct NoiseAddress {
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;
};

/// How far two caches are apart.
struct StateDistance {
  double squares = 0;       ///< Σ (a − b)² over all numbers of K and V
  double norm_squares = 0;  ///< Σ a²
  std::int64_t differing = 0;
  std::int64_t numbers = 0;
};
/// Of the first `rows` rows. Errors (usage): of EngineSequence::state().
[[nodiscard]] Result<StateDistance> state_distance(const EngineSequence& a, const EngineSequence& b,
                                                   std::int64_t rows);

/// Moves every number of the first `rows` rows of K and V by `ulps` steps of its format, up or down
/// by chance; of a fraction of a step, the whole step with that probability. Errors of the engine.
[[nodiscard]] Result<bool> add_ulp_noise(EngineSequence& sequence, std::int64_t rows, double ulps,
                                         const NoiseAddress& address);

/// Moves numbers of `sequence`, chosen by chance, by a step up or down, until keys and values of
/// each layer are as far (L2) from what they were as those of `other` are: by whole steps, as many
/// as that takes where moving all of them by one would not do. Errors of the engine.
[[nodiscard]] Result<bool> add_matched_noise(EngineSequence& sequence, const EngineSequence& other,
                                             std::int64_t rows, const NoiseAddress& address);

}  // namespace kvsim::experiments
