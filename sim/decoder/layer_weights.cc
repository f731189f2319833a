// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/layer_weights.h"

#include <cmath>
#include <cstddef>

#include "sim/random_weights.h"
#include "softfloat/formats.h"

namespace kvsim::decoder {
namespace {

// The high bit keeps these streams apart from those of sim/inputs.h.
std::uint64_t stream_of(std::int64_t layer, WeightKind kind) {
  return std::uint64_t{1} << 63 | static_cast<std::uint64_t>(layer) << 8 |
         static_cast<std::uint64_t>(kind);
}

}  // namespace

Result<const float*> LayerWeights::matrix(std::int64_t layer, WeightKind kind, std::int64_t terms,
                                          std::int64_t outputs, double factor) {
  const auto size = static_cast<std::size_t>(terms * outputs);
  if (matrix_.size() < size) matrix_.resize(size);
  const auto deviation = static_cast<float>(factor / std::sqrt(static_cast<double>(terms)));
  const Result<bool> filled =
      fill_random_weights({seed_, stream_of(layer, kind), storage_, deviation}, 0,
                          std::span(matrix_).first(size), engine_);
  if (!filled) return filled.error();
  return static_cast<const float*>(matrix_.data());
}

Result<std::vector<float>> LayerWeights::vector(std::int64_t layer, WeightKind kind,
                                                std::int64_t count, float center,
                                                float deviation) const {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  Result<bool> done = fill_random_weights(
      {seed_, stream_of(layer, kind), softfloat::binary32, deviation}, 0, numbers, engine_);
  if (!done) return done.error();
  for (float& x : numbers) x = center + x;
  done = round_values(storage_, numbers, numbers, engine_.level);
  if (!done) return done.error();
  return numbers;
}

}  // namespace kvsim::decoder
