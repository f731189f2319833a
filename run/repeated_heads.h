// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "run/arm.h"
#include "sim/decoder/weights_view.h"
#include "sim/decoder_shape.h"
#include "softfloat/result.h"

/// A model with grouped queries as multi-head attention: the same numbers, other shapes.
namespace kvsim {

/// Every query head has a copy of the key and value head that it shared: in exact arithmetic this
/// is the same model.
struct RepeatedModel {
  DecoderShape shape;
  DecoderWeights weights;  ///< keys' and values' stand in `numbers`, the others where they stood
  std::vector<std::vector<std::byte>> numbers;
};
[[nodiscard]] RepeatedModel repeat_kv_heads(const DecoderShape& shape,
                                            const DecoderWeights& weights);

/// The same, made when it is first asked for. Several threads may ask.
class RepeatedHeads {
 public:
  [[nodiscard]] const RepeatedModel& of(const DecoderShape& shape,
                                        const DecoderWeights& weights) const;

 private:
  mutable std::once_flag once_;
  mutable std::unique_ptr<const RepeatedModel> model_;
};

/// Takes kv-heads=shared|repeated out of an arm's settings: whether they are repeated. Errors
/// (usage): another value.
[[nodiscard]] Result<bool> take_kv_heads(std::vector<ArmSetting>& settings);

}  // namespace kvsim
