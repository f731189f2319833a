// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "sim/decoder_shape.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// What is compared of a back end and the simulator.
namespace kvsim::gpu {

/// One operator at one shape, as a model calls it. Which sizes count depends on the operator.
struct Check {
  std::string label;      ///< what the model uses it for: "gate"
  std::string operation;  ///< one of check_operations()
  softfloat::Format format;
  std::int64_t rows = 1;     ///< M of linear; vectors of all but attention
  std::int64_t outputs = 1;  ///< N of linear
  std::int64_t terms = 1;    ///< K of linear; elements of a vector
  std::int64_t heads = 1;    ///< of attention, as are the sizes below
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t queries = 1;  ///< 1, or as many as keys under a causal mask
  std::int64_t keys = 1;
  double epsilon = 1e-5;   ///< of a norm
  bool plus_one = false;   ///< of a norm: the weight counts as 1 + weight
  bool has_weight = true;  ///< of a norm

  [[nodiscard]] bool is_attention() const { return operation == "sdpa" || operation == "eager"; }
};

/// linear, sum, mean, softmax (to binary32, as models call it), rms-norm (as transformers writes
/// it), silu, gelu-tanh, rsqrt (in binary32), residual (x + y), product (x · y), sdpa and eager
/// (attention; one query, or a causal prefill).
[[nodiscard]] std::span<const std::string_view> check_operations();

/// "M = 7, N = 128, K = 320", "64 × 128", "8:2 heads of 16, 64 queries, 64 keys".
[[nodiscard]] std::string size_text(const Check& check);

/// The shapes of the inputs: x, w of linear; q, k, v; x, weight; x, y.
[[nodiscard]] std::vector<std::vector<std::int64_t>> input_shapes(const Check& check);

/// How many numbers the operator gives.
[[nodiscard]] std::int64_t output_count(const Check& check);

/// Sizes that a model leaves open.
struct CheckSizes {
  std::vector<std::int64_t> rows = {1, 2, 7, 64};  ///< of linear layers; the others: the last one
  std::int64_t keys = 64;                          ///< of attention, of the rows of softmax
  /// A linear layer with more outputs is cut: to fewer by a multiple of 64, so that the edge of its
  /// last tile stays what it is.
  std::int64_t most_outputs = 4096;
};

/// Every operator of a model at each of its shapes, once. Nothing where the shape has none.
[[nodiscard]] std::vector<Check> model_checks(const DecoderShape& shape,
                                              const softfloat::Format& format,
                                              const CheckSizes& sizes);

}  // namespace kvsim::gpu
