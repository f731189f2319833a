// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim {

/// What the records of some studies say, one after another.
class SummaryReport {
 public:
  explicit SummaryReport(std::string command);

  /// Reads the records at `path` and adds what they say. Errors of read_study(), study_named() and
  /// summarize(); (usage) a second file of one study.
  [[nodiscard]] Result<bool> add(const std::string& path);
  [[nodiscard]] Report take() { return std::move(report_); }

 private:
  Report report_;
};

}  // namespace kvsim
