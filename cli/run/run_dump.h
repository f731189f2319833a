// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "run/run_loop.h"

namespace kvsim {

/// The tensors of --dump: one safetensors file for each prompt and arm, FOLDER/prompt-P.arm-A
/// .safetensors, written whole when the prompt is done.
///   logits  F64 [steps, vocabulary]
///   hidden  F32 [steps, layers, hidden]           of the last row after each layer
///   k, v    F32 [layers, kv_heads, positions, head_dim]   as last written
class RunDump {
 public:
  /// `with_logits`: also the logits.
  RunDump(const PreparedRun& run, std::string folder, bool with_logits)
      : run_(run), folder_(std::move(folder)), with_logits_(with_logits) {}

  /// Takes a step. Threads may call it at once.
  [[nodiscard]] Result<bool> add(const StepDump& step);
  /// Writes every file. Errors (file).
  [[nodiscard]] Result<bool> finish();

 private:
  struct Key {
    std::int64_t layer = 0;
    std::int64_t head = 0;
    std::int64_t position = 0;
    auto operator<=>(const Key&) const = default;
  };
  /// What one prompt and arm have dumped so far.
  struct Tensors {
    std::int64_t steps = 0;
    std::vector<double> logits;
    std::vector<float> hidden;
    std::int64_t layers = 0;
    std::int64_t width = 0;
    std::map<Key, std::vector<float>> k;
    std::map<Key, std::vector<float>> v;
  };

  [[nodiscard]] Result<bool> write(std::int64_t prompt, std::size_t arm, const Tensors& tensors);

  const PreparedRun& run_;
  std::string folder_;
  bool with_logits_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::size_t>, Tensors> open_;
};

}  // namespace kvsim
