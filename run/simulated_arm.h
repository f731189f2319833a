// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch_choice.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// What a seeded decoder needs to compute as an arm does, with weights of its own.
struct SimulatedSetup {
  const DecoderShape* shape = nullptr;  ///< the arm's, which outlives this
  DispatchChoice dispatch;
  softfloat::Format storage;    ///< of weights, hidden states, keys and values
  RopeSource rope_source = {};  ///< instead of the dispatch's kernel; may be empty
};

/// An EngineArm may also be this: the simulator has kernels for what it does.
class SimulatedArm {
 public:
  SimulatedArm() = default;
  SimulatedArm(const SimulatedArm&) = delete;
  SimulatedArm& operator=(const SimulatedArm&) = delete;
  virtual ~SimulatedArm() = default;

  /// Errors (usage): a setting that seeded decoders do not know; (unavailable): kernels that the
  /// simulator does not have.
  [[nodiscard]] virtual Result<SimulatedSetup> simulated() const = 0;
};

}  // namespace kvsim
