// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/printable.h"
#include "cli/run/diff_report.h"

namespace kvsim {
namespace {

constexpr std::array diff_options{
    OptionSpec{"--arm", "LABEL",
               "the arm of each side; given once: of both files, or against the other arm of one "
               "file (default: of one file its first two, of two files their first)",
               true},
};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// The arms of a file, as its first head line has them.
std::vector<std::string> labels_of(const Records& records) {
  std::vector<std::string> labels;
  if (records.prompts.empty()) return labels;
  labels.reserve(records.prompts.front().run.arms.size());
  for (const RecordArm& arm : records.prompts.front().run.arms) labels.push_back(arm.label);
  return labels;
}

/// The arm that is compared of a file: the given one, or by its place.
Result<std::string> arm_of(const DiffSide& side, const std::optional<std::string>& given,
                           std::size_t place) {
  const std::vector<std::string> labels = labels_of(*side.records);
  if (given) {
    if (std::find(labels.begin(), labels.end(), *given) != labels.end()) return *given;
    const std::vector<std::string_view> words(labels.begin(), labels.end());
    return unknown_word(fmt::format("{}: --arm", printable(side.path)), *given, words);
  }
  if (place < labels.size()) return labels[place];
  return usage(fmt::format("{} has one arm, {}; a second file is accepted, or a run of two arms",
                           printable(side.path), labels.empty() ? "none" : labels.front()));
}

Result<Answer> run_diff(const ParsedOptions& options) {
  const std::vector<std::string>& files = options.positionals();
  if (files.empty() || files.size() > 2) {
    return usage(
        fmt::format("{} files are given; one with two arms, or two are accepted", files.size()));
  }
  const std::vector<std::string> given = options.values("--arm");
  if (given.size() > 2) {
    return usage(fmt::format("--arm is given {} times; up to two are accepted", given.size()));
  }
  const Result<Records> first_records = read_records(files.front());
  if (!first_records) return first_records.error();
  Result<Records> second_records = Records{};
  if (files.size() == 2) second_records = read_records(files[1]);
  if (!second_records) return second_records.error();

  DiffSide first{files.front(), {}, &*first_records};
  DiffSide second{files.back(), {}, files.size() == 2 ? &*second_records : &*first_records};
  std::array<std::optional<std::string>, 2> arms;
  for (std::size_t i = 0; i < given.size(); ++i) arms.at(i) = given[i];
  if (files.size() == 2 && !arms[1]) arms[1] = arms[0];  // one label is of both files
  const Result<std::string> first_arm = arm_of(first, arms[0], 0);
  if (!first_arm) return first_arm.error();
  // In one file, one label is compared with the first of the others.
  const std::size_t place =
      files.size() == 2 || *first_arm != labels_of(*first_records).front() ? 0 : 1;
  const Result<std::string> second_arm = arm_of(second, arms[1], place);
  if (!second_arm) return second_arm.error();
  first.arm = *first_arm;
  second.arm = *second_arm;
  const Result<RecordComparison> comparison =
      compare_records(*first.records, first.arm, *second.records, second.arm);
  if (!comparison) return comparison.error();
  Answer answer;
  answer.report = diff_report(first, second, *comparison);
  switch (verdict_of(*comparison)) {
    case DiffVerdict::equal:
      return answer;
    case DiffVerdict::different:
      answer.exit_code = ExitCode::check_failed;
      break;
    case DiffVerdict::cannot_tell:
      answer.exit_code = ExitCode::cannot_tell;
      break;
  }
  answer.complaint = answer.report.headline;
  return answer;
}

}  // namespace

const Command diff_command{
    .name = "diff",
    .summary = "where two arms of a run, or two runs, first differ",
    .synopsis = "FILE [FILE] [--arm LABEL [--arm LABEL]] [OPTIONS]",
    .description =
        "Compares the records of two arms, of one file or of two, prompt by prompt at four "
        "levels:\n"
        "state (K and V by layer, head and position), layer (hidden states), route (experts) and\n"
        "token, with all logits before it; then flip index, margins, KL and churn. Records hold\n"
        "digests and the 20 largest logits: KL from them is a lower bound. Exit code 0: equal bit\n"
        "for bit, 1: different, 4: nothing differs, but not everything was recorded.",
    .options = diff_options,
    .examples =
        "  kvsim diff run.jsonl --arm on --arm off\n"
        "  kvsim diff before.jsonl after.jsonl --arm on",
    .run = run_diff,
};

}  // namespace kvsim
