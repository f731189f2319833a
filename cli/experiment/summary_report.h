// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "experiments/study.h"
#include "softfloat/result.h"

namespace kvsim {

/// What the records of some studies say, one after another; the controls first.
class SummaryReport {
 public:
  explicit SummaryReport(std::string command);

  /// Reads the records at `path` and adds what they say. Errors of read_study(), study_named() and
  /// summarize(); (usage) a second file of one study.
  [[nodiscard]] Result<bool> add(const std::string& path);
  /// What failed, such as "control 3 failed"; empty where nothing did.
  [[nodiscard]] std::string failed() const;
  /// The report of all. Where something failed, the headline of every other study says so.
  [[nodiscard]] Report take();

 private:
  /// What the records of one study say.
  struct Part {
    const experiments::StudyRow* row = nullptr;
    Json head;
    experiments::StudySummary summary;
    std::string path;
  };
  void put(Part part);

  Report report_;
  std::vector<Part> parts_;
};

}  // namespace kvsim
