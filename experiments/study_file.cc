// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "experiments/study_lines.h"
#include "model/mapped_file.h"
#include "model/quote.h"
#include "run/record_writer.h"
#include "sim/tasks.h"

namespace kvsim::experiments {
namespace {

constexpr std::int64_t most_shards = 4096;

/// The units of a shard, as indices.
std::vector<std::size_t> units_of(const Shard& shard, std::size_t count) {
  std::vector<std::size_t> indices;
  for (auto i = static_cast<std::size_t>(shard.index); i < count;
       i += static_cast<std::size_t>(shard.of)) {
    indices.push_back(i);
  }
  return indices;
}

/// Writes lines in their order, whichever is ready first.
class OrderedLines {
 public:
  OrderedLines(RecordWriter& writer, std::size_t count) : writer_(writer), lines_(count) {}

  Result<bool> add(std::size_t place, std::string line) {
    const std::scoped_lock lock(mutex_);
    lines_[place] = std::move(line);
    for (; next_ < lines_.size(); ++next_) {
      std::optional<std::string>& ready = lines_[next_];
      if (!ready) break;
      if (Result<bool> written = writer_.append(*ready); !written) return written;
      ready.reset();
    }
    return true;
  }

 private:
  RecordWriter& writer_;
  std::mutex mutex_;
  std::vector<std::optional<std::string>> lines_;
  std::size_t next_ = 0;
};

std::string_view text_of(const MappedFile& file) {
  // A file is bytes, a text is characters: the same memory.
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Takes the lines of pieces that an interrupted run has left. Holds how many.
Result<std::size_t> take_kept(RecordWriter& writer, const std::string& path,
                              std::span<const StudyUnit> units,
                              std::span<const std::size_t> indices) {
  std::size_t kept = 0;
  while (!writer.next_kept_line().empty()) {
    const Result<StudyLine> line = parse_unit_line(writer.next_kept_line());
    const bool is_next = line && kept < indices.size() && line->index == indices[kept] &&
                         line->unit.unit.part == units[indices[kept]].part &&
                         line->unit.unit.prompt == units[indices[kept]].prompt &&
                         line->unit.unit.seed == units[indices[kept]].seed;
    if (!is_next) {
      return Error{ErrorKind::file,
                   fmt::format("{}: line {}{}{}; accepted: the file of the same study",
                               quote_path(path), kept + 2, line ? "" : ": ",
                               line ? " is not this study's" : line.error().message)};
    }
    writer.skip();
    ++kept;
  }
  return kept;
}

/// Reports the share of rows that is done.
class RowProgress {
 public:
  RowProgress(const std::function<void(double)>& report, std::int64_t rows)
      : report_(report), rows_(std::max<std::int64_t>(1, rows)) {}

  void add(std::int64_t rows) {
    const std::scoped_lock lock(mutex_);
    done_ += rows;
    if (report_) report_(static_cast<double>(done_) / static_cast<double>(rows_));
  }

 private:
  const std::function<void(double)>& report_;
  std::int64_t rows_;
  std::mutex mutex_;
  std::int64_t done_ = 0;
};

}  // namespace

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, shard.index);
  const bool has_slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second =
      has_slash ? std::from_chars(first.ptr + 1, end, shard.of) : std::from_chars_result{};
  if (!has_slash || second.ec != std::errc() || second.ptr != end || shard.index < 0 ||
      shard.of > most_shards || shard.index >= shard.of) {
    return Error{ErrorKind::usage, fmt::format("a shard {}; accepted: i/n with 0 <= i < n <= {}",
                                               quote(text), most_shards)};
  }
  return shard;
}

Result<bool> run_study(const StudyRow& row, const StudySetup& setup, const std::string& path,
                       const StudyRunOptions& options) {
  const std::unique_ptr<Study> study = row.make();
  const Result<std::vector<StudyUnit>> units = study->units(setup);
  if (!units) return units.error();
  const std::vector<std::size_t> indices = units_of(options.shard, units->size());
  Result<RecordWriter> writer =
      options.resume ? RecordWriter::resume(path, study_schema) : RecordWriter::create(path);
  if (!writer) return writer.error();
  const bool is_new = writer->kept_lines().empty() && writer->torn_bytes() == 0;
  const Result<bool> head = writer->append(line_of(head_of(row.name, setup, *units)));
  if (!head) return head.error();
  const Result<std::size_t> kept = take_kept(*writer, path, *units, indices);
  if (!kept) return kept.error();

  std::int64_t rows = 0;
  for (const std::size_t index : indices) rows += (*units)[index].rows;
  RowProgress progress(options.progress, rows);
  for (std::size_t i = 0; i < *kept; ++i) progress.add((*units)[indices[i]].rows);
  const std::span<const std::size_t> left = std::span(indices).subspan(*kept);
  OrderedLines lines(*writer, left.size());
  bool has_lines = *kept > 0;
  Result<bool> done =
      run_tasks(std::ssize(left), options.threads, [&](std::int64_t i) -> Result<bool> {
        const std::size_t index = left[static_cast<std::size_t>(i)];
        const StudyUnit& unit = (*units)[index];
        Result<Json> values = study->compute(setup, unit);
        if (!values) {
          return Error{
              values.error().kind,
              fmt::format("{}, {}, prompt {}: {}", row.name, unit.part,
                          setup.prompts[static_cast<std::size_t>(unit.prompt)].prompt.number,
                          values.error().message)};
        }
        Result<bool> written =
            lines.add(static_cast<std::size_t>(i), unit_line(index, unit, std::move(*values)));
        progress.add(unit.rows);
        return written;
      });
  has_lines = has_lines || writer->kept_lines().empty();
  if (!done && is_new && !has_lines) std::remove(path.c_str());
  return done;
}

Result<StudyRecords> read_study(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  StudyRecords records;
  std::size_t number = 0;
  std::size_t units = 0;
  for (std::string_view text = text_of(*file); !text.empty();) {
    const std::size_t end = text.find('\n');
    const auto fail = [&](std::string_view problem) {
      return Error{ErrorKind::file,
                   fmt::format("{}: line {}: {}", quote_path(path), number + 1, problem)};
    };
    if (end == std::string_view::npos) return fail("has no end; accepted: whole lines (--resume)");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (number == 0) {
      Result<StudyHead> head = parse_head_line(line);
      if (!head) return fail(head.error().message);
      records.head = std::move(head->head);
      units = head->units;
    } else {
      Result<StudyLine> unit = parse_unit_line(line);
      if (!unit) return fail(unit.error().message);
      if (unit->index != records.units.size()) {
        return fail(fmt::format("is piece {}; accepted: piece {} of {} (merge joins shards)",
                                unit->index, records.units.size(), units));
      }
      records.units.push_back(std::move(unit->unit));
    }
    ++number;
  }
  if (number == 0 || records.units.size() != units) {
    return Error{ErrorKind::file,
                 fmt::format("{}: has {} of {} pieces; accepted: a whole study (--resume goes on)",
                             quote_path(path), records.units.size(), units)};
  }
  return records;
}

Result<bool> merge_studies(std::span<const std::string> parts, const std::string& path) {
  std::vector<MappedFile> files;
  files.reserve(parts.size());
  std::string_view head;
  std::vector<std::string_view> lines;
  for (const std::string& part : parts) {
    Result<MappedFile> file = MappedFile::open(part);
    if (!file) return file.error();
    files.push_back(std::move(*file));
    const auto fail = [&](std::string_view problem) {
      return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(part), problem)};
    };
    std::string_view text = text_of(files.back());
    for (bool is_head = true; !text.empty(); is_head = false) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) return fail("ends in the middle of a line");
      const std::string_view line = text.substr(0, end + 1);
      text.remove_prefix(end + 1);
      if (is_head) {
        const Result<StudyHead> read = parse_head_line(line);
        if (!read) return fail(read.error().message);
        if (head.empty()) head = line;
        if (head != line) return fail("is of another study than the first file");
        lines.resize(read->units);
        continue;
      }
      const Result<StudyLine> unit = parse_unit_line(line);
      if (!unit) return fail(unit.error().message);
      if (unit->index >= lines.size()) return fail(fmt::format("has a piece {}", unit->index));
      std::string_view& place = lines[unit->index];
      if (!place.empty() && place != line) {
        return fail(fmt::format("piece {} stands in another file with other numbers", unit->index));
      }
      place = line;
    }
  }
  const auto missing = std::ranges::find(lines, std::string_view());
  if (head.empty() || missing != lines.end()) {
    return Error{ErrorKind::file,
                 fmt::format("piece {} is in none of {} files; accepted: the files "
                             "of all shards",
                             missing - lines.begin(), parts.size())};
  }
  Result<RecordWriter> writer = RecordWriter::create(path);
  if (!writer) return writer.error();
  Result<bool> done = writer->append(head);
  for (std::size_t i = 0; done && i < lines.size(); ++i) done = writer->append(lines[i]);
  if (!done) std::remove(path.c_str());
  return done;
}

}  // namespace kvsim::experiments
