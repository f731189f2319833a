// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/experiment/summary_report.h"
#include "experiments/study_file.h"

namespace kvsim {
namespace {

constexpr std::array merge_options{
    OptionSpec{"--out", "FILE", "the joined records; FILE must not exist"},
};

Result<Answer> run_merge(const ParsedOptions& options) {
  const std::optional<std::string> out = options.value("--out");
  if (options.positionals().empty() || !out || out->empty()) {
    return Error{ErrorKind::usage,
                 fmt::format("{} files and {}; one file or more, and --out FILE are accepted",
                             options.positionals().size(), out ? "--out ''" : "no --out")};
  }
  const Result<bool> done = experiments::merge_studies(options.positionals(), *out);
  if (!done) return done.error();
  SummaryReport report("merge");
  if (const Result<bool> added = report.add(*out); !added) return added.error();
  Answer answer;
  answer.report = report.take();
  return answer;
}

Result<Answer> run_report(const ParsedOptions& options) {
  if (options.positionals().empty()) {
    return Error{ErrorKind::usage, "no file; one or more of kvsim experiment are accepted"};
  }
  SummaryReport report("report");
  for (const std::string& path : options.positionals()) {
    if (const Result<bool> added = report.add(path); !added) return added.error();
  }
  Answer answer;
  answer.report = report.take();
  return answer;
}

}  // namespace

const Command merge_command{
    .name = "merge",
    .summary = "join the records of a study's shards into those of one run",
    .synopsis = "FILE ... --out FILE",
    .description =
        "Joins the files of kvsim experiment --shard I/N, all N of them, in any order. "
        "The result\n"
        "has the bytes of a run in one piece; what it says is printed.",
    .options = merge_options,
    .examples =
        "  kvsim merge behaviour.0-of-2.jsonl behaviour.1-of-2.jsonl --out behaviour.jsonl\n"
        "  kvsim merge shards/*.jsonl --out behaviour.jsonl",
    .run = run_merge,
};

const Command report_command{
    .name = "report",
    .summary = "what the records of a study say",
    .synopsis = "FILE ...",
    .description =
        "Prints the summary of records that kvsim experiment wrote. Nothing is computed "
        "again.",
    .options = {},
    .examples =
        "  kvsim report experiments/behaviour.jsonl\n"
        "  kvsim report experiments/*.jsonl --markdown",
    .run = run_report,
};

}  // namespace kvsim
