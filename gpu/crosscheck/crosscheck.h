// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/crosscheck/check.h"
#include "gpu/crosscheck/simulated.h"
#include "softfloat/result.h"

/// A back end and the simulator, compared bit by bit.
namespace kvsim::gpu {

/// One number of an input that is not 0.
struct FailingNumber {
  std::size_t input = 0;   ///< which: 0 is x or q
  std::int64_t index = 0;  ///< in its row-major order
  float value = 0;
};

/// Inputs on which the two differ, with as many numbers as possible replaced by 0; all but
/// `numbers` are 0. The shape stays, because orders depend on it.
struct FailingTensors {
  std::vector<FailingNumber> numbers;
  std::int64_t index = 0;  ///< of the result
  float seen = 0;
  float simulated = 0;
};

/// Whether a check gave the same bits.
struct CheckOutcome {
  std::string kernel;          ///< that was simulated
  std::int64_t compared = 0;   ///< numbers of the result
  std::int64_t different = 0;  ///< in any bit; a NaN is a NaN
  std::uint64_t max_ulp = 0;   ///< largest distance
  std::int64_t first = -1;     ///< index of the first that differs; −1: none
  float seen = 0;              ///< there
  float simulated = 0;         ///< there
  std::string suspect;         ///< where the differences lie: "outputs 640–643 of 644"; or empty
  std::optional<FailingTensors> failing;
};

struct CompareOptions {
  bool shrinks = true;  ///< a difference is made small, in more runs of each side
  /// Multiply-adds that these runs may take, which are at least 150 and at most 4000.
  std::int64_t most_work = std::int64_t{1} << 32;
};

/// Runs both sides on the inputs. Errors: of observe() and of the simulation.
[[nodiscard]] Result<CheckOutcome> compare_check(Backend& backend, Simulation& simulation,
                                                 const Check& check,
                                                 const std::vector<Tensor>& inputs,
                                                 const CompareOptions& options = {});

}  // namespace kvsim::gpu
