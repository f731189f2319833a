// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/printable.h"

namespace kvsim {
namespace {

// The name of the temporary file while there is one, for the signal handler.
std::array<char, PATH_MAX + 16> unfinished_file{};
volatile std::sig_atomic_t has_unfinished_file = 0;

// The same for a folder with plain files.
std::array<char, PATH_MAX + 16> unfinished_folder{};
volatile std::sig_atomic_t has_unfinished_folder = 0;

// Removes the folder with system calls only: opendir() may allocate, which a signal handler may
// not. What stays behind, stays: there is nobody to tell.
void remove_unfinished_folder() {
  const int folder = ::open(unfinished_folder.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) std::array<char, 4096> entries{};
  while (true) {
    const ssize_t size = ::getdents64(folder, entries.data(), entries.size());
    if (size <= 0) break;
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      ::unlinkat(folder, entry->d_name, 0);
      at += entry->d_reclen;
    }
  }
  ::close(folder);
  ::rmdir(unfinished_folder.data());
}

extern "C" void end_on_signal(int signal_number) {
  if (has_unfinished_file != 0) ::unlink(unfinished_file.data());
  if (has_unfinished_folder != 0) remove_unfinished_folder();
  ::_exit(128 + signal_number);
}

std::string reason(int error_number) {
  std::array<char, 256> buffer{};
  return ::strerror_r(error_number, buffer.data(), buffer.size());  // the GNU form
}

Error file_error(std::string_view what, std::string_view path, int error_number) {
  return {ErrorKind::file, fmt::format("{} {}: {}", what, in_quotes(path), reason(error_number))};
}

// 0, or the errno of the write that failed.
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

Result<std::monostate> write_in_place(const std::string& path, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return file_error("cannot write the --output file", path, errno);
  int failure = write_all(descriptor, text);
  if (::close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure != 0 && failure != EPIPE) {
    return file_error("cannot write the --output file", path, failure);
  }
  return std::monostate{};
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = end_on_signal;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
  ::sigaction(SIGXFSZ, &action, nullptr);  // writing past a size limit fails with EFBIG instead
}

Result<std::monostate> write_standard_output(std::string_view text) {
  // POSIX makes a write of up to PIPE_BUF bytes to a pipe atomic: pieces that end with a line and
  // are no longer than that leave whole lines behind whenever a signal ends the program.
  constexpr std::size_t atomic_bytes = PIPE_BUF;
  while (!text.empty()) {
    std::size_t length = std::min(text.size(), atomic_bytes);
    if (length < text.size()) {
      const std::size_t last_newline = text.rfind('\n', length - 1);
      if (last_newline != std::string_view::npos) {
        length = last_newline + 1;
      } else {
        const std::size_t next_newline = text.find('\n', length);
        length = next_newline == std::string_view::npos ? text.size() : next_newline + 1;
      }
    }
    const int failure = write_all(STDOUT_FILENO, text.substr(0, length));
    if (failure == EPIPE) return std::monostate{};
    if (failure != 0) {
      return Error{ErrorKind::file,
                   fmt::format("cannot write to standard output: {}", reason(failure))};
    }
    text.remove_prefix(length);
  }
  return std::monostate{};
}

UnfinishedFolder::UnfinishedFolder(std::string_view folder) {
  if (folder.size() >= unfinished_folder.size()) return;
  std::ranges::copy(folder, unfinished_folder.begin());
  unfinished_folder.at(folder.size()) = '\0';
  has_unfinished_folder = 1;
}

UnfinishedFolder::~UnfinishedFolder() { has_unfinished_folder = 0; }

SignalsWait::SignalsWait() {
  sigset_t both = {};
  ::sigemptyset(&both);
  ::sigaddset(&both, SIGINT);
  ::sigaddset(&both, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &both, &before_);
}

SignalsWait::~SignalsWait() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

Result<std::monostate> write_output_file(const std::string& path, std::string_view text) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return file_error("cannot write the --output file", path, EISDIR);
  }
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, text);

  std::string target = path;
  if (exists) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                           &std::free);
    if (real != nullptr) target = real.get();
  }
  const std::string pattern = target + ".XXXXXX";
  if (path.empty() || pattern.size() >= unfinished_file.size()) {
    return file_error("cannot write the --output file", path, path.empty() ? ENOENT : ENAMETOOLONG);
  }
  std::copy(pattern.begin(), pattern.end(), unfinished_file.begin());
  unfinished_file.at(pattern.size()) = '\0';
  const int descriptor = ::mkstemp(unfinished_file.data());
  if (descriptor < 0) return file_error("cannot write the --output file", path, errno);
  has_unfinished_file = 1;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? (status.st_mode & 07777U) : (0666U & ~mask);
  int failure = ::fchmod(descriptor, mode) != 0 ? errno : 0;
  if (failure == 0) failure = write_all(descriptor, text);
  if (::close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure == 0 && ::rename(unfinished_file.data(), target.c_str()) != 0) failure = errno;
  if (failure != 0) ::unlink(unfinished_file.data());
  has_unfinished_file = 0;
  if (failure != 0) return file_error("cannot write the --output file", path, failure);
  return std::monostate{};
}

void write_error_line(std::string_view line) { write_error(std::string(line) + "\n"); }

void write_error(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

std::function<void(std::string)> error_lines(std::string_view command, bool quiet) {
  return [start = fmt::format("kvsim {}: ", command), quiet](const std::string& line) {
    if (!quiet) write_error_line(start + line);
  };
}

}  // namespace kvsim
