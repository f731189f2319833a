// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "sim/compare.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// `kvsim replay`: one operator on captured tensors under one or several kernels.
namespace kvsim {

/// What seeded errors of exp move: the results under exp ± `ulp`, compared with those of a
/// correctly rounded exp.
struct ExpBand {
  double ulp = 0;              ///< of --exp-ulp
  std::int64_t reruns = 0;     ///< each with its own seed
  std::int64_t different = 0;  ///< elements that moved in the rerun where most did
  std::uint64_t max_ulp = 0;   ///< largest movement of any element in any rerun
};

/// How a result knows exp: what answers of it carry as `exp`.
enum class ExpKnowledge : std::uint8_t {
  none,     ///< the kernel has no exp
  exact,    ///< bit for bit what the kernel's exp gives
  bounded,  ///< the hardware's exp is known by a bound only
};

/// The results of one kernel.
struct ReplayOutput {
  std::string name;               ///< "h100-fa3", or the order
  Json choices = Json::object();  ///< what the kernel chose from the shape: {"splits": 3}
  softfloat::Format format;       ///< 8, 16, 32 or 64 bits wide
  /// How well the sources support the row; nothing for an order.
  std::optional<softfloat::Evidence> evidence;
  std::vector<std::byte> bytes;  ///< codes, little-endian, row-major
  /// attention: the lse of each row, [heads][positions]; empty where the kernel gives none.
  std::vector<float> log_sums;
  ExpKnowledge exp = ExpKnowledge::none;
  std::optional<ExpBand> band;
};

/// What an operator hands to the report.
struct Replay {
  std::string operator_name;
  Json input;  ///< members of JSON's `input` beside operator, tensors and expect
  std::vector<std::pair<std::string, std::string>> facts;  ///< lines above the tables
  std::string tensor = "out";                              ///< name of the result in --out
  std::vector<std::int64_t> shape;                         ///< of each result
  /// Sizes by which differences are mapped; heads × positions × width is the number of elements.
  std::int64_t heads = 1;
  std::int64_t positions = 1;
  std::string_view head_name;  ///< "head", "row"; empty: there is one only
  std::string_view position_name = "position";
  std::string_view position_names = "positions";
  std::string_view element_name = "element";  ///< "element", "row"
  NanEquality nan = NanEquality::always;
  std::vector<ReplayOutput> outputs;  ///< at least one
};

/// A tensor that the results are compared with.
struct Expected {
  std::string name;
  softfloat::Format format;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

}  // namespace kvsim
