// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/folder_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

bool stands(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

FolderWriter::FolderWriter(FolderWriter&& other) noexcept
    : target_(std::move(other.target_)),
      partial_(std::move(other.partial_)),
      folder_(std::exchange(other.folder_, -1)),
      file_(std::exchange(other.file_, -1)) {}

FolderWriter& FolderWriter::operator=(FolderWriter&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(partial_, other.partial_);
  std::swap(folder_, other.folder_);
  std::swap(file_, other.file_);
  return *this;
}

FolderWriter::~FolderWriter() {
  if (file_ >= 0) ::close(file_);
  if (folder_ < 0) return;
  remove();
  ::close(folder_);
}

void FolderWriter::remove() {
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
}

Error FolderWriter::error(std::string_view what, int error_number) const {
  return Error{ErrorKind::file, fmt::format("{}: {}: {}", quote_path(target_), what,
                                            std::system_category().message(error_number))};
}

Result<FolderWriter> FolderWriter::make(const std::string& target) {
  FolderWriter writer;
  // "out/" is the same folder as "out", but "out/.partial" is not beside it.
  writer.target_ = target.substr(0, target.find_last_not_of('/') + 1);
  if (writer.target_.empty() || target.find('\0') != std::string::npos) {
    return Error{ErrorKind::file, "the folder's name is empty; accepted: a path"};
  }
  if (stands(writer.target_)) {
    return Error{ErrorKind::file, fmt::format("{}: exists already; accepted: a path where nothing "
                                              "stands",
                                              quote_path(writer.target_))};
  }
  writer.partial_ = writer.target_ + ".partial";
  if (::mkdir(writer.partial_.c_str(), 0777) != 0 && errno != EEXIST) {
    return writer.error("cannot make the folder", errno);
  }
  const int folder =
      ::open(writer.partial_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return writer.error("cannot make the folder", errno);
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
    ::close(folder);
    return Error{ErrorKind::file, fmt::format("{}: another program is writing it; accepted: one at "
                                              "a time",
                                              quote_path(writer.target_))};
  }
  writer.folder_ = folder;
  std::error_code failure;
  for (const fs::directory_entry& left : fs::directory_iterator(writer.partial_, failure)) {
    fs::remove_all(left.path(), failure);
    if (failure) return writer.error("cannot remove what was left", failure.value());
  }
  return writer;
}

Result<bool> FolderWriter::begin_file(std::string_view name) {
  if (Result<bool> ended = end_file(); !ended) return ended;
  file_ = ::openat(folder_, std::string(name).c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file_ < 0) return error(fmt::format("cannot write {}", name), errno);
  return true;
}

Result<bool> FolderWriter::write(std::span<const std::byte> bytes) {
  constexpr std::size_t most_per_call = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), std::min(bytes.size(), most_per_call));
    if (written < 0) {
      if (errno == EINTR) continue;
      return error("cannot write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

Result<bool> FolderWriter::write_file(std::string_view name, std::string_view text) {
  if (Result<bool> begun = begin_file(name); !begun) return begun;
  return write(std::as_bytes(std::span(text)));
}

Result<bool> FolderWriter::end_file() {
  if (file_ < 0) return true;
  int failure = ::fsync(file_) != 0 ? errno : 0;
  if (::close(std::exchange(file_, -1)) != 0 && failure == 0) failure = errno;
  if (failure != 0) return error("cannot write", failure);
  return true;
}

Result<bool> FolderWriter::finish() {
  if (Result<bool> ended = end_file(); !ended) return ended;
  if (::fsync(folder_) != 0) return error("cannot write", errno);
  // rename() would take an empty folder's place.
  if (stands(target_)) return error("cannot take its name", EEXIST);
  if (::rename(partial_.c_str(), target_.c_str()) != 0) {
    return error("cannot take its name", errno);
  }
  ::close(std::exchange(folder_, -1));
  return true;
}

}  // namespace kvsim
