// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/setup.h"
#include "softfloat/result.h"

/// What a study is: pieces of work that know nothing of each other, and what their numbers say.
namespace kvsim::experiments {

/// JSON whose members keep their order.
using Json = nlohmann::ordered_json;

/// One piece of work: a part of the study, mostly of one prompt. Its numbers depend on the setup
/// and on these fields alone.
struct StudyUnit {
  std::string part;         ///< what is measured: "greedy"
  std::int64_t prompt = 0;  ///< index into StudySetup::prompts
  std::uint64_t seed = 0;   ///< of a random strategy, number of a draw of seeded numbers; else 0
  /// Rows of a model that it computes, about: for an estimate of time.
  std::int64_t rows = 0;

  friend bool operator==(const StudyUnit&, const StudyUnit&) = default;
};

/// A column of a table.
struct SummaryColumn {
  std::string key;      ///< member name in JSON
  std::string heading;  ///< for people
  std::string unit;     ///< may be empty
  bool is_text = false;
};

/// A cell: what people see, and the value.
struct SummaryCell {
  std::string text;
  Json value;
};

struct SummaryTable {
  std::string title;
  std::vector<SummaryColumn> columns;
  std::vector<std::vector<SummaryCell>> rows;
  std::vector<std::string> notes;
};

/// What the records of a study say.
struct StudySummary {
  std::string headline;  ///< one sentence
  std::vector<SummaryTable> tables;
  Json result;  ///< every number that a text may quote, by name
  /// Why nothing that rests on this holds: "control 3 failed"; empty where nothing failed.
  std::string failed = {};
};

/// The lines of a study's file, read back.
struct StudyRecords {
  Json head;
  struct Unit {
    StudyUnit unit;
    Json values;
  };
  std::vector<Unit> units;  ///< in the study's order
};

/// A question with the way to answer it.
class Study {
 public:
  Study() = default;
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;
  virtual ~Study() = default;

  /// The pieces of work, in the order of the file. Errors (usage): a setup that it cannot use.
  [[nodiscard]] virtual Result<std::vector<StudyUnit>> units(const StudySetup& setup) const = 0;
  /// The numbers of one of them; finite. May be called by several threads. Errors of the engine.
  [[nodiscard]] virtual Result<Json> compute(const StudySetup& setup,
                                             const StudyUnit& unit) const = 0;
  /// What the numbers say together: a function of the records. Throws Json::exception where a field
  /// is not there or is something else: call summarize() below. Errors (cannot_tell): too few.
  [[nodiscard]] virtual Result<StudySummary> summarize(const StudyRecords& records) const = 0;
};

/// A row of the table of studies.
struct StudyRow {
  std::string_view name;
  std::string_view question;
  std::unique_ptr<Study> (*make)();
};

/// Every study, in the order in which `all` runs them.
[[nodiscard]] std::span<const StudyRow> study_rows();
/// Study::summarize(), with an error (file) for records that are not the study's.
[[nodiscard]] Result<StudySummary> summarize(const StudyRow& row, const StudyRecords& records);

/// A row of study_rows(), or controls_row(). Errors (usage): a name that there is none of.
[[nodiscard]] Result<const StudyRow*> study_named(std::string_view name);

}  // namespace kvsim::experiments
