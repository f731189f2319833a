// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string>

#include "run/engine.h"
#include "run/sim_engine.h"
#include "sim/decoder/incremental.h"
#include "softfloat/result.h"

namespace kvsim {

/// What a sequence of the simulator needs of its arm.
struct ArmSetup {
  const DecoderShape* shape = nullptr;
  const DecoderWeights* weights = nullptr;
  DecoderArmOptions options;
  CommonRows common_rows = CommonRows::kept;
  std::string rope_origin = {};  ///< name; empty: the dispatch's kernel makes the factors
};

/// The decoder of an arm. Errors of IncrementalDecoder::make().
[[nodiscard]] Result<IncrementalDecoder> make_decoder(const ArmSetup& setup);

/// A new sequence, which refers to `setup`. Errors of make_decoder().
[[nodiscard]] Result<std::unique_ptr<EngineSequence>> open_sequence(const ArmSetup& setup,
                                                                    const Launch& launch);

}  // namespace kvsim
