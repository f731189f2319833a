// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study.h"

/// A control: a measurement that tells rounding from a defect, because the two predict something
/// else.
namespace kvsim::experiments {

/// One figure and what it may be.
struct ControlCheck {
  std::string what;  ///< "mean KL (nats)"
  double measured = 0;
  double low = -std::numeric_limits<double>::infinity();  ///< allowed from here …
  double high = std::numeric_limits<double>::infinity();  ///< … to here
  /// What predict expects of rounding, and what rounding was measured to be in the same run, in the
  /// terms of `measured`; none where that is no matter of size, or was not measured.
  std::optional<double> predicted = {};
  std::optional<double> floor = {};

  [[nodiscard]] bool passed() const { return measured >= low && measured <= high; }
};

enum class ControlOutcome : std::uint8_t { green, failed, not_applicable };

/// "green", "failed", "not applicable".
[[nodiscard]] std::string_view to_string(ControlOutcome outcome);

/// Why a control, or a part of it, is not applicable here.
struct ControlReason {
  std::string text;
  std::vector<std::string> parts;  ///< empty: all of it
};

/// What a control says.
struct ControlVerdict {
  std::vector<ControlCheck> checks;
  std::vector<ControlReason> reasons;

  /// Not applicable where nothing was checked.
  [[nodiscard]] ControlOutcome outcome() const;
  /// The first check that failed, else the first one; null where there is none.
  [[nodiscard]] const ControlCheck* decisive() const;
};

/// What the controls measured: of each number, the values of each prompt.
using ControlRecords = std::map<int, std::vector<Json>>;

/// A row of the table of controls.
struct ControlRow {
  int number = 0;             ///< 1 to 16, as docs/experiments/controls.md has them
  std::string_view name;      ///< at most 30 characters
  std::string_view rounding;  ///< what rounding predicts
  std::string_view artefact;  ///< what a defect predicts
  std::string_view judged;    ///< how the figure is judged
  int texts = 0;              ///< that measuring one prompt runs, about
  /// The values of the prompt of that index. What cannot be measured here is said in them as
  /// not_applicable(); an error ends the controls.
  Result<Json> (*measure)(const StudySetup& setup, std::int64_t prompt) = nullptr;
  /// A function of the records alone. Throws Json::exception as Study::summarize().
  ControlVerdict (*judge)(const ControlRecords& records) = nullptr;
};

/// All 16, in the order of their numbers.
[[nodiscard]] std::span<const ControlRow> control_rows();

/// Values that say why a control, or a part of one, cannot be measured here.
[[nodiscard]] Json not_applicable(std::string_view reason);
/// The reason that not_applicable() was given; nothing where the values are measured ones.
[[nodiscard]] std::optional<std::string> reason_of(const Json& values);

}  // namespace kvsim::experiments
