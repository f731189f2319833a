// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/attention_shape.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// The operation of rows of attention.
inline constexpr std::string_view attention_operation = "sdpa";

/// What a row of attention is: a kernel of the table, for the one layer at which it gave every bit.
struct OwnAttention {
  std::string kernel;
  AttentionShape shape;
  std::map<std::string, std::string> attributes;  ///< of the call: "causal", "splits" …
  std::string walk;                               ///< what was seen of it, in words
};

/// A kernel that the user revealed and saved: one row of the user's kernel file.
struct OwnKernel {
  std::string name;
  std::string operation;     ///< "linear", "dot", …
  std::string backend;       ///< as --backend takes it
  std::string device;        ///< what ran it: the CPU's model, or the device
  std::string date;          ///< "2026-11-30", UTC
  std::string key;           ///< gpu::Fingerprint::key(): where the same order is to be expected
  std::int64_t rows = 1;     ///< M: sizes of the call that was looked at; of sums only
  std::int64_t outputs = 1;  ///< N
  std::int64_t terms = 1;    ///< K
  std::string order;         ///< in the grammar of parse_order(); of sums only
  Product product = Product::fused;
  softfloat::Format storage;  ///< of the inputs
  softfloat::Format accumulator;
  softfloat::Format output;
  std::int64_t outputs_checked = 0;  ///< replayed, all equal to the bit
  std::string tree_sha256;
  /// Sums of the call that are added otherwise: "columns 572–575: ORDER". Usually none.
  std::vector<std::string> exceptions;
  std::optional<OwnAttention> attention;                         ///< of rows of attention only
  std::vector<std::pair<std::string, std::string>> fingerprint;  ///< everything the back end tells
};

/// The user's kernel file: $XDG_CONFIG_HOME/kvsim/kernels.toml, else
/// $HOME/.config/kvsim/kernels.toml; empty where neither variable is an absolute path.
[[nodiscard]] std::string own_kernels_path();

/// The rows of a kernel file, in its order; none where there is no such file or `path` is empty.
/// Errors: (usage) a file that is no TOML, or a row that lacks something or has another value than
/// accepted, with path and line; (file) one that cannot be read.
[[nodiscard]] Result<std::vector<OwnKernel>> read_own_kernels(const std::string& path);

/// Whether a row of that name can be added to the file: small letters, digits, '-', '_' and '.', at
/// most 64, of which the first is a letter or a digit, and no row of the file or of the tables is
/// called so. Errors (usage), and those of read_own_kernels(); (file) where `path` is empty.
[[nodiscard]] Result<bool> check_own_kernel_name(const std::string& path, const std::string& name);

/// Adds a row behind the others, which stay as they are, to the letter. The file is replaced whole
/// or not at all, and made where there is none. Errors: as check_own_kernel_name(); (file).
[[nodiscard]] Result<bool> add_own_kernel(const std::string& path, const OwnKernel& kernel);

/// Today's date in UTC: "2026-11-30".
[[nodiscard]] std::string today();

}  // namespace kvsim
