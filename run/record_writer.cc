// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/record_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/quote.h"
#include "run/record.h"

namespace kvsim {
namespace {

std::string reason(int error_number) {
  std::array<char, 256> buffer{};
  return ::strerror_r(error_number, buffer.data(), buffer.size());  // the GNU form
}

Error file_error(std::string_view path, std::string_view problem) {
  return {ErrorKind::file, fmt::format("{}: {}", quote_path(path), problem)};
}

Error system_error(std::string_view path, std::string_view what, int error_number) {
  return file_error(path, fmt::format("{}: {}", what, reason(error_number)));
}

/// 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Whether the file begins as its first record must, as far as it goes: nothing else is ever cut.
bool begins_like_records(int descriptor, std::string_view schema) {
  const std::string expected = fmt::format("{{\"schema\":\"{}\",", schema);
  std::string found(expected.size(), '\0');
  const ssize_t got = ::pread(descriptor, found.data(), found.size(), 0);
  return got >= 0 && expected.starts_with(found.substr(0, static_cast<std::size_t>(got)));
}

/// The position behind the last newline of a file of that size, or −1 with errno.
std::int64_t end_of_whole_lines(int descriptor, std::int64_t size) {
  std::array<char, 1 << 16> buffer{};
  while (size > 0) {
    const std::int64_t start = std::max<std::int64_t>(0, size - std::ssize(buffer));
    const auto wanted = static_cast<std::size_t>(size - start);
    const ssize_t got = ::pread(descriptor, buffer.data(), wanted, start);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    const std::string_view part(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t newline = part.rfind('\n');
    if (newline != std::string_view::npos) return start + static_cast<std::int64_t>(newline) + 1;
    size = start;
  }
  return 0;
}

}  // namespace

Result<RecordWriter> RecordWriter::create(const std::string& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST) {
    return file_error(path, "exists; accepted: a path without a file, or resuming its run");
  }
  if (descriptor < 0) return system_error(path, "cannot be made", errno);
  RecordWriter writer(descriptor, path);
  if (const Result<bool> kept = writer.keep_whole_lines({}); !kept) return kept.error();
  return writer;
}

Result<RecordWriter> RecordWriter::resume(const std::string& path, std::string_view schema) {
  const int descriptor =
      ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor < 0) return system_error(path, "cannot be continued", errno);
  RecordWriter writer(descriptor, path);
  if (const Result<bool> kept = writer.keep_whole_lines(schema); !kept) return kept.error();
  return writer;
}

Result<bool> RecordWriter::keep_whole_lines(std::string_view schema) {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) return system_error(path_, "cannot be read", errno);
  if (!S_ISREG(status.st_mode)) {
    return file_error(path_, "is no regular file; accepted: a file of records");
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    return file_error(path_, "is being written by another run; accepted: one writer at a time");
  }
  if (!begins_like_records(descriptor_, schema)) {
    return file_error(path_,
                      fmt::format("does not begin like records; accepted: a file of {}", schema));
  }
  const std::int64_t whole = end_of_whole_lines(descriptor_, status.st_size);
  if (whole < 0) return system_error(path_, "cannot be read", errno);
  if (whole < status.st_size && ::ftruncate(descriptor_, whole) != 0) {
    return system_error(path_, "cannot be cut behind its last whole line", errno);
  }
  torn_bytes_ = static_cast<std::size_t>(status.st_size - whole);
  size_ = static_cast<std::uint64_t>(whole);
  if (whole == 0) return true;
  Result<MappedFile> file = MappedFile::open(path_);
  if (!file) return file.error();
  kept_file_ = std::move(*file);
  const std::span<const std::byte> bytes = kept_file_.bytes();
  kept_ = {reinterpret_cast<const char*>(bytes.data()),
           std::min(bytes.size(), static_cast<std::size_t>(whole))};
  return true;
}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      kept_file_(std::move(other.kept_file_)),
      kept_(std::exchange(other.kept_, {})),
      line_(other.line_),
      size_(other.size_),
      torn_bytes_(other.torn_bytes_) {}

RecordWriter& RecordWriter::operator=(RecordWriter&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  path_ = std::move(other.path_);
  kept_file_ = std::move(other.kept_file_);
  kept_ = std::exchange(other.kept_, {});
  line_ = other.line_;
  size_ = other.size_;
  torn_bytes_ = other.torn_bytes_;
  return *this;
}

RecordWriter::~RecordWriter() { close(); }

void RecordWriter::close() {
  if (descriptor_ >= 0) ::close(descriptor_);  // every line was given to the system before
  descriptor_ = -1;
}

std::string_view RecordWriter::next_kept_line() const {
  return kept_.substr(0, kept_.empty() ? 0 : kept_.find('\n') + 1);
}

void RecordWriter::skip() {
  const std::size_t length = next_kept_line().size();
  kept_.remove_prefix(length);
  if (length > 0) ++line_;
}

Result<bool> RecordWriter::append(std::string_view line) {
  if (line.find('\n') + 1 != line.size() || line.empty()) {
    return Error{ErrorKind::usage,
                 fmt::format("record {}; accepted: one line, ended by a newline", quote(line))};
  }
  if (!kept_.empty()) {
    if (next_kept_line() != line) {
      return file_error(path_, fmt::format("line {} is not what this run writes there; accepted: "
                                           "the file of the same run",
                                           line_ + 1));
    }
    skip();
    return false;
  }
  if (const int failure = write_all(descriptor_, line); failure != 0) {
    const bool cut = ::ftruncate(descriptor_, static_cast<off_t>(size_)) == 0;
    return system_error(path_, cut ? "cannot be written" : "cannot be written; a torn line remains",
                        failure);
  }
  size_ += line.size();
  ++line_;
  return true;
}

Result<bool> write_run_meta(const std::string& records_path, const RunMeta& meta) {
  const auto text = [](const std::string& value) {
    return nlohmann::json(value).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  };
  const std::string content = fmt::format(
      "{{\"schema\":\"kvsim.record_meta/1\",\"wall_seconds\":{},\"host\":{},\"threads\":{},"
      "\"simd\":{}}}\n",
      meta.wall_seconds, text(meta.host), meta.threads, text(meta.simd));
  const std::string path = records_path + ".meta.json";
  const std::string partial = path + ".partial";
  const int descriptor =
      ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return system_error(path, "cannot be made", errno);
  int failure = write_all(descriptor, content);
  if (::close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure == 0 && ::rename(partial.c_str(), path.c_str()) != 0) failure = errno;
  if (failure == 0) return true;
  ::unlink(partial.c_str());
  return system_error(path, "cannot be written", failure);
}

}  // namespace kvsim
