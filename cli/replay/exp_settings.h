// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/replay/replay.h"
#include "sim/exp_models.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim {

/// What --exp-table and --exp-ulp say of an exp that is known by a bound only.
class ExpSettings {
 public:
  /// Reruns of --exp-ulp, with the seeds 1, 2, ….
  static constexpr std::int64_t reruns = 4;

  /// Reads both options. The table is the tensor ex2, F32 [2^b] with 1 ≤ b ≤ 24, of a safetensors
  /// file: entry i is ex2.approx.ftz(i ÷ 2^b). Errors: of the reader (file); another type or shape,
  /// an entry that is no ex2 (make_exp_table), both options at once, a number out of range (usage).
  /// Memory: the file's size, 176 MiB (SafetensorsLimits) and 64 MiB for the largest table.
  [[nodiscard]] static Result<ExpSettings> from(const ParsedOptions& options);

  /// Adds what was given to JSON's input.
  void describe(Json& input) const;

  /// The ulp of --exp-ulp; 0 without it.
  [[nodiscard]] double ulp() const { return ulp_; }

  /// The table of --exp-table, which points into this object; nothing without it.
  [[nodiscard]] std::optional<ExpTable> table() const;

  /// One kernel's results.
  struct Values {
    std::vector<float> values;
    std::vector<float> log_sums;  ///< as in ReplayOutput
    ExpKnowledge exp = ExpKnowledge::none;
  };

  /// Fills format, bytes, log_sums, exp and band of `output` from `run`, which is called once and,
  /// with
  /// --exp-ulp and a bounded exp, once more for each seed. Holds true, or the error of a run.
  [[nodiscard]] Result<bool> fill(
      ReplayOutput& output, const softfloat::Format& format,
      const std::function<Result<Values>(const ExpOptions&)>& run) const;

 private:
  std::vector<float> values_;
  std::string table_path_;
  ExpTable table_;
  double ulp_ = 0;
};

}  // namespace kvsim
