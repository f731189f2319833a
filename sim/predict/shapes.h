// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/attention/run.h"
#include "sim/decoder_shape.h"
#include "sim/predict/attention_numbers.h"
#include "sim/predict/kernel_choice.h"
#include "sim/predict/size_classes.h"
#include "softfloat/result.h"

/// The same row among other shapes: part 3 of predict.
namespace kvsim {

/// What is asked. Empty lists and zeros ask nothing.
struct ShapeQuestions {
  std::vector<std::int64_t> rows = {};    ///< rows of the launch: batch size or padding
  std::int64_t cached = 0;                ///< tokens of a prefix that the cache has …
  std::int64_t new_tokens = 0;            ///< … and those that are computed after it
  std::vector<std::int64_t> chunks = {};  ///< parts of a prompt that is prefilled in turn
  std::vector<std::int64_t> verify_widths =
      {};                                ///< tokens that speculative decoding verifies at once
  std::vector<std::int64_t> ranks = {};  ///< of tensor parallelism
};

struct ShapeOptions {
  DecoderShape decoder;
  softfloat::Format storage;
  KernelChoice kernels;
  AttentionLaunch launch;
  AttentionMask mask;
  std::int64_t kv_len = 1;  ///< keys that the compared row sees, where the question does not say
  /// Rows of different numbers that are put through each linear layer, and the first outputs of it
  /// that are computed: the more, the rarer the differences that are seen.
  std::int64_t rows = 8;
  std::int64_t outputs = 512;
  std::uint64_t seed = 1;
  AttentionOptions run;
};

/// One chunk of a prompt, or the part of a prompt behind a cached prefix, against the whole prompt
/// at once.
struct ChunkDifference {
  std::string question;  ///< "chunks" or "prefix hit"
  std::string operator_name;
  std::int64_t first = 0;       ///< first position of the chunk
  std::int64_t last = 0;        ///< last position
  std::int64_t positions = 0;   ///< compared: the last ones of the chunk
  std::string rule;             ///< of the chunk
  std::string whole_rule;       ///< of the whole prompt
  VectorDifference difference;  ///< chunk against whole
};

struct ShapeReport {
  std::vector<SizeClasses> classes;
  std::vector<ChunkDifference> chunks;
};

/// Answers all questions. Errors as run_attention() and apply_linear(), and (usage) heads or terms
/// that ranks do not divide.
[[nodiscard]] Result<ShapeReport> answer_shapes(const ShapeOptions& options,
                                                const ShapeQuestions& questions);

}  // namespace kvsim
