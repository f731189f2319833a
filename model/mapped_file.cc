// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

/// Closes a descriptor at the end of its scope; a mapping outlives its descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

Error refused(const std::string& path, std::string_view reason) {
  return Error{ErrorKind::file,
               fmt::format("{}: {}; accepted: a readable regular file with content",
                           quote_path(path), reason)};
}

Error system_failure(const std::string& path, std::string_view action, int code) {
  return refused(path, fmt::format("cannot {}: {}", action, std::system_category().message(code)));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "is a directory";
  if (S_ISFIFO(mode)) return "is a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "is a device";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is not a regular file";
}

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  // The interface of munmap is not const; the bytes are not written.
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  if (path.empty()) return refused("(empty path)", "names no file");
  if (path.find('\0') != std::string::npos) return refused(path, "holds a zero byte");
  // O_NONBLOCK: opening a pipe without a writer would wait for ever otherwise.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0) return system_failure(path, "open", errno);
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) return system_failure(path, "read its size", errno);
  if (!S_ISREG(status.st_mode)) return refused(path, kind_of(status.st_mode));
  if (status.st_size <= 0) return refused(path, "is empty");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (address == MAP_FAILED) return system_failure(path, "map", errno);
  MappedFile mapped;
  mapped.bytes_ = {static_cast<const std::byte*>(address), size};
  return mapped;
}

}  // namespace kvsim
