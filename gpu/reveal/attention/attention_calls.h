// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "sim/attention_shape.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// One attention layer that a back end is asked for.
struct AttentionLayer {
  AttentionShape shape;
  softfloat::Format format;                            ///< of q, k and v
  std::map<std::string, std::string> attributes = {};  ///< of every call: "causal", "scale" …

  /// The attribute `causal` is 1.
  [[nodiscard]] bool causal() const;
  /// Factor of the scores: the attribute `scale`, or 1 ÷ √head_dim.
  [[nodiscard]] double scale() const;
};

/// Numbers of one call.
struct AttentionOperands {
  std::vector<float> q;  ///< [query_heads][query_len][head_dim]
  std::vector<float> k;  ///< [kv_heads][kv_len][head_dim]
  std::vector<float> v;  ///< [kv_heads][kv_len][head_dim]
};

/// Operands of the layer's sizes, +0 everywhere.
[[nodiscard]] AttentionOperands zero_operands(const AttentionShape& shape);

/// The operator `sdpa` of a back end at one layer's sizes. The back end must outlive it.
class AttentionCalls {
 public:
  AttentionCalls(Backend& backend, AttentionLayer layer);

  [[nodiscard]] Backend& backend() const { return backend_; }
  [[nodiscard]] const AttentionLayer& layer() const { return layer_; }
  [[nodiscard]] const AttentionShape& shape() const { return layer_.shape; }
  /// Of the results; known after the first call.
  [[nodiscard]] const softfloat::Format& output() const { return output_; }
  /// Calls so far.
  [[nodiscard]] std::int64_t calls() const { return calls_; }
  /// Operator, back end and sizes, for messages.
  [[nodiscard]] std::string description() const;

  /// One call; the result is [query_heads][query_len][head_dim]. k and v may begin `misalignment`
  /// bytes off a multiple of 64. Errors: those of the back end.
  [[nodiscard]] Result<std::vector<float>> run(AttentionOperands operands,
                                               std::int64_t misalignment = 0);

 private:
  Backend& backend_;
  AttentionLayer layer_;
  softfloat::Format output_;
  std::int64_t calls_ = 0;
};

/// The call that run() makes.
[[nodiscard]] OperatorCall attention_call(const AttentionLayer& layer, AttentionOperands operands,
                                          std::int64_t misalignment = 0);

}  // namespace kvsim::gpu
