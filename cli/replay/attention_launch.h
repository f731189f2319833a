// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "sim/attention/problem.h"
#include "softfloat/result.h"

/// The options of `kvsim replay attention` that fix mask and launch.
namespace kvsim {

/// The lengths of the sequences of one launch.
struct BatchLengths {
  std::string text;                   ///< "900,1000,120,500", as people see it
  std::vector<std::int64_t> kv_lens;  ///< keys of each sequence
};

/// Who shares the choice of splits.
enum class SplitBy : std::uint8_t {
  batch,     ///< the kernel chooses for the whole launch
  sequence,  ///< each sequence as if it were alone
};

/// What the options say.
struct AttentionSettings {
  AttentionMask mask;
  float scale = 0;         ///< 0: 1 ÷ √head_dim
  AttentionLaunch launch;  ///< without batch and lengths
  std::int64_t batch = 1;  ///< sequences in the launch, those of the file included
  SplitBy split_by = SplitBy::batch;
  std::vector<BatchLengths> batches;  ///< at least one
  bool has_lengths = false;           ///< --kv-lens is given
};

/// Reads the options for a file with that many queries and keys. Errors (usage): a value out of
/// range; lengths whose number does not divide the positions, or that are longer than a sequence's
/// share of them; options that exclude each other.
[[nodiscard]] Result<AttentionSettings> attention_settings(const ParsedOptions& options,
                                                           std::int64_t queries, std::int64_t keys);

/// The launch of every sequence of a batch; points into `lengths`.
[[nodiscard]] AttentionLaunch launch_of(const AttentionSettings& settings,
                                        const BatchLengths& lengths);

/// Everything that was set, for JSON's input.
[[nodiscard]] Json settings_json(const AttentionSettings& settings);

/// "causal, window 4096, soft cap 50".
[[nodiscard]] std::string mask_text(const AttentionMask& mask);

/// "4 sequences of 900,1000,120,500 keys, splits by batch".
[[nodiscard]] std::string launch_text(const AttentionSettings& settings);

}  // namespace kvsim
