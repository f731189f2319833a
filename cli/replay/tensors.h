// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/replay/replay.h"
#include "model/safetensors.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// A tensor as values.
struct TensorValues {
  softfloat::Format format;  ///< of every value
  std::vector<std::int64_t> shape;
  std::vector<float> values;  ///< row-major
};

/// The tensors that a replay reads, and how: as they are, or rounded first (--input).
class ReplayFile {
 public:
  /// Opens the file of --tensors. `input`: the format that every tensor is rounded to, ties to
  /// even; nothing: each keeps its own. Errors: of the reader (file); no --tensors, a format of
  /// --input that is unknown or has numbers that are not floats (usage).
  [[nodiscard]] static Result<ReplayFile> open(const ParsedOptions& options);

  [[nodiscard]] const SafetensorsFile& file() const { return file_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const std::optional<softfloat::Format>& input() const { return input_; }
  [[nodiscard]] bool has(std::string_view name) const { return file_.find(name) != nullptr; }

  /// The tensor `name`. `shape` is filled where a size is −1 and checked elsewhere; `axes` names it
  /// in errors: "[rows, terms]". Errors (usage): no such tensor; a type that is not F64, F32, F16,
  /// BF16 or an 8-bit float; F64 without --input; another shape; a size of 0; more than
  /// max_tensor_elements elements.
  [[nodiscard]] Result<TensorValues> values(std::string_view name, std::span<std::int64_t> shape,
                                            std::string_view axes) const;

  /// The error for a tensor of --expect that the file does not hold.
  [[nodiscard]] std::optional<Error> check_expected(const ParsedOptions& options) const;

  /// The tensor of --expect; nothing without that option. Errors (usage): no such tensor, or a
  /// shape or element type that is not that of every output.
  [[nodiscard]] Result<std::optional<Expected>> expected(const ParsedOptions& options,
                                                         const Replay& replay) const;

 private:
  ReplayFile(SafetensorsFile file, std::optional<softfloat::Format> input)
      : file_(std::move(file)), input_(input) {}

  [[nodiscard]] Error fail(const std::string& what) const;

  SafetensorsFile file_;
  std::optional<softfloat::Format> input_;
};

/// Elements of the largest tensor that is read: 2^28, a gigabyte as floats.
inline constexpr std::int64_t max_tensor_elements = std::int64_t{1} << 28;

/// Writes every output to the file of --out, where it is given, whole or not at all: one output as
/// tensor replay.tensor, several as replay.tensor + "." + name; where an output has log_sums, also
/// lse, F32 [heads, positions], named likewise. The metadata holds operator and kernels. Errors: of
/// the writer (file), a format without an element type (usage).
[[nodiscard]] std::optional<Error> write_outputs(const ParsedOptions& options,
                                                 const Replay& replay);

/// The element type that files have for a format: "BF16"; empty where there is none.
[[nodiscard]] std::string_view dtype_name_of(const softfloat::Format& format);

}  // namespace kvsim
