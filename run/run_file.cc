// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/run_file.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/quote.h"
#include "run/record_reader.h"
#include "run/record_writer.h"

namespace kvsim {
namespace {

/// The lines that an interrupted run has left.
struct KeptLines {
  std::vector<RecordLine> lines;
  std::size_t whole_prompts = 0;  ///< those behind which another one begins
  std::size_t whole_lines = 0;    ///< of these
};

Result<KeptLines> read_kept(std::string_view text, const std::string& path) {
  KeptLines kept;
  std::size_t heads = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Result<RecordLine> line = parse_record_line(text.substr(0, end));
    if (!line) {
      return Error{line.error().kind, fmt::format("{}: line {}: {}", quote_path(path),
                                                  kept.lines.size() + 1, line.error().message)};
    }
    if (std::holds_alternative<PromptRecord>(*line)) {
      kept.whole_prompts = heads++;
      kept.whole_lines = kept.lines.size();
    }
    kept.lines.push_back(std::move(*line));
    text.remove_prefix(end + 1);
  }
  return kept;
}

Error not_this_run(const std::string& path, std::string_view problem) {
  return {ErrorKind::file,
          fmt::format("{}: {}; accepted: the file of the same run", quote_path(path), problem)};
}

/// Takes whole prompts from the file as they stand. Holds how many.
Result<std::size_t> take_kept(const PreparedRun& run, const std::string& path, RecordWriter& writer,
                              const RunOutput& output) {
  const Result<KeptLines> kept = read_kept(writer.kept_lines(), path);
  if (!kept) return kept.error();
  if (kept->whole_prompts >= run.prompts().size()) {
    return not_this_run(
        path, fmt::format("holds more than the {} prompts of this run", run.prompts().size()));
  }
  std::size_t prompt = 0;
  for (std::size_t i = 0; i < kept->whole_lines; ++i) {
    const RecordLine& line = kept->lines[i];
    if (std::holds_alternative<PromptRecord>(line)) {
      const Result<bool> same = writer.append(to_line(run.head_line(prompt++)));
      if (!same) return same.error();
    } else {
      writer.skip();
    }
    if (const Result<bool> taken = output.line(line); !taken) return taken.error();
  }
  return kept->whole_prompts;
}

}  // namespace

Result<RunFileSummary> run_to_file(const PreparedRun& run, const std::string& path, bool resume,
                                   const RunOutput& output) {
  Result<RecordWriter> writer = resume ? RecordWriter::resume(path) : RecordWriter::create(path);
  if (!writer) return writer.error();
  const bool is_new = writer->kept_lines().empty() && writer->torn_bytes() == 0;
  bool has_steps = false;
  const auto give_up = [&](const Error& error) {
    if (is_new && !has_steps) std::remove(path.c_str());
    return error;
  };
  const Result<std::size_t> kept = take_kept(run, path, *writer, output);
  if (!kept) return kept.error();
  RunOutput to_file = output;
  to_file.line = [&](const RecordLine& line) -> Result<bool> {
    if (Result<bool> written = writer->append(to_line(line)); !written) return written;
    has_steps = has_steps || std::holds_alternative<StepRecord>(line);
    return output.line(line);
  };
  Result<RunSummary> summary = run.run(to_file, *kept);
  if (!summary) return give_up(summary.error());
  if (!writer->kept_lines().empty()) {
    return not_this_run(path, "holds more lines than this run writes");
  }
  return RunFileSummary{std::move(*summary), static_cast<std::int64_t>(*kept)};
}

}  // namespace kvsim
