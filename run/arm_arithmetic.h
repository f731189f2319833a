// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "run/engine.h"
#include "sim/decoder/formats.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch_choice.h"
#include "softfloat/result.h"

namespace kvsim {

/// What predict takes of an arm to compute the same arithmetic on seeded weights: no weights of its
/// own, and no planted defects.
struct ArmArithmetic {
  DecoderShape shape;
  DispatchChoice dispatch;      ///< of an engine whose kernels have no names: those in their place
  DecoderFormats formats;       ///< of weights: those that they stand in, where that is known
  RopeSource rope_source = {};  ///< instead of the dispatch's kernel; may be empty
  bool is_planted = false;      ///< the arm has a planted defect besides
};

/// An arm that says what it computes. Not every engine's arm does.
class SaysArithmetic {
 public:
  SaysArithmetic() = default;
  SaysArithmetic(const SaysArithmetic&) = delete;
  SaysArithmetic& operator=(const SaysArithmetic&) = delete;
  virtual ~SaysArithmetic() = default;

  [[nodiscard]] virtual Result<ArmArithmetic> arithmetic() const = 0;
};

/// Of an arm. Errors (unavailable): it does not say.
[[nodiscard]] inline Result<ArmArithmetic> arithmetic_of(const EngineArm& arm) {
  const auto* const source = dynamic_cast<const SaysArithmetic*>(&arm);
  if (source != nullptr) return source->arithmetic();
  return Error{ErrorKind::unavailable, "this engine does not say what it computes"};
}

}  // namespace kvsim
