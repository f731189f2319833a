// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/predict/attention_pair.h"
#include "softfloat/result.h"

/// Comparisons whose outcome is known beforehand: part 7 of predict.
namespace kvsim {

/// One control on one attention layer.
struct ControlResult {
  std::string name;
  std::string meaning;  ///< one clause: what is compared with what
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  double relative_l2 = 0;
  bool must_be_zero = false;  ///< a difference is a defect

  [[nodiscard]] bool passed() const { return !must_be_zero || differing == 0; }
};

/// Runs the controls on the last query of `numbers`:
/// - replica: cache-on's kernel twice;
/// - identity: cache-on's kernel on the numbers of a sequence, and on a copy of its last step that
///   was made on its own;
/// - exact accumulator: every sum exact and rounded once, with the keys in order and in reverse;
/// - float32 and float64: the block structures of both kernels (`pair`) in that format throughout,
///   nothing rounded to storage: what the order alone does where rounding errors are small.
/// Errors as run_attention().
[[nodiscard]] Result<std::vector<ControlResult>> run_controls(const AttentionPairOptions& options,
                                                              const AttentionPair& pair,
                                                              const AttentionNumbers& numbers);

}  // namespace kvsim
