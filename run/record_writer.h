// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/mapped_file.h"
#include "run/record.h"
#include "softfloat/result.h"

namespace kvsim {

/// Appends records to a file, whole lines only: a line is given to the system in one piece, a
/// failed write is taken back, and while a writer is open no other one can be.
///
/// Resuming drops a torn last line and keeps the whole ones. The caller then makes the run's lines
/// again from the first one: as long as there are kept lines, append() compares instead of writing.
/// So the file of an interrupted and resumed run has the bytes of an uninterrupted one, or an error
/// says where the two runs differ. A caller that knows a line to be right need not make it again:
/// skip() passes over it.
class RecordWriter {
 public:
  /// A new file. Errors (file): the path exists or cannot be written.
  [[nodiscard]] static Result<RecordWriter> create(const std::string& path);
  /// The file of an interrupted run, whose first line begins with the schema, or a new one where
  /// there is none. Errors (file): no regular file, cannot be written, another writer has it
  /// open.
  [[nodiscard]] static Result<RecordWriter> resume(const std::string& path,
                                                   std::string_view schema = record_schema);

  RecordWriter(RecordWriter&& other) noexcept;
  RecordWriter& operator=(RecordWriter&& other) noexcept;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  ~RecordWriter();

  /// The next line, ended by its only newline; true when it was written, false when it stood there
  /// already. Errors: (usage) not one line; (file) the kept line is another one, or the system
  /// cannot write.
  [[nodiscard]] Result<bool> append(std::string_view line);

  /// The kept line that append() would compare next, with its newline; empty where there is none.
  [[nodiscard]] std::string_view next_kept_line() const;
  /// All kept lines that are still ahead, each with its newline.
  [[nodiscard]] std::string_view kept_lines() const { return kept_; }
  /// Passes over next_kept_line().
  void skip();

  /// Bytes of a torn line that resume() has dropped.
  [[nodiscard]] std::size_t torn_bytes() const { return torn_bytes_; }

 private:
  RecordWriter(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  [[nodiscard]] Result<bool> keep_whole_lines(std::string_view schema);
  void close();

  int descriptor_ = -1;
  std::string path_;
  MappedFile kept_file_;
  std::string_view kept_;   ///< kept lines that are still ahead
  std::size_t line_ = 0;    ///< lines behind
  std::uint64_t size_ = 0;  ///< of the file: whole lines
  std::size_t torn_bytes_ = 0;
};

/// What is said about a run beside its records.
struct RunMeta {
  double wall_seconds = 0;
  std::string host;
  std::int64_t threads = 1;
  std::string simd;  ///< level of the vector instructions that were used
};

/// Writes `records_path`.meta.json, whole or not at all. Errors (file).
[[nodiscard]] Result<bool> write_run_meta(const std::string& records_path, const RunMeta& meta);

}  // namespace kvsim
