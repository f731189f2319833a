// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/models/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "cli/printable.h"

namespace kvsim {
namespace {

Error system_error(std::string_view what, int error_number) {
  return Error{ErrorKind::file,
               fmt::format("{}: {}", what, std::system_category().message(error_number))};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// A file in memory that holds `text`, read from its beginning; -1 where that fails.
int file_with(std::string_view text) {
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0) return -1;
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0) return -1;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

struct Streams {
  int input = -1;
  int output = -1;
  int errors = -1;
};

/// What runs between fork and exec: only calls that are safe there.
[[noreturn]] void become(const Streams& streams, char* const* arguments, char* const* environment,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // the parent ended before the line above
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  ::dup2(streams.input, STDIN_FILENO);
  ::dup2(streams.output, STDOUT_FILENO);
  ::dup2(streams.errors, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : name_(std::move(other.name_)),
      process_(std::exchange(other.process_, -1)),
      status_(other.status_),
      output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)) {}

ChildProcess::~ChildProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGTERM);
    wait_for_end(true);
  }
  if (output_ >= 0) ::close(output_);
  if (errors_ >= 0) ::close(errors_);
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments,
                                         std::string_view input,
                                         const std::vector<std::string>& environment) {
  ChildProcess child;
  child.name_ = arguments.front();
  std::vector<std::string> variables = environment;
  for (char** each = ::environ; *each != nullptr; ++each) variables.emplace_back(*each);
  const std::vector<char*> argument_list = pointers(arguments);
  const std::vector<char*> variable_list = pointers(variables);
  std::array<int, 2> pipe_ends{-1, -1};
  child.errors_ = file_with({});
  const int given = file_with(input);
  if (given < 0 || child.errors_ < 0 || ::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    const int failure = errno;
    if (given >= 0) ::close(given);
    return system_error("cannot start " + in_quotes(child.name_), failure);
  }
  child.output_ = pipe_ends[0];
  const pid_t parent = ::getpid();
  child.process_ = ::fork();
  if (child.process_ == 0) {
    become({given, pipe_ends[1], child.errors_}, argument_list.data(), variable_list.data(),
           parent);
  }
  const int failure = errno;
  ::close(given);
  ::close(pipe_ends[1]);
  if (child.process_ < 0) return system_error("cannot start " + in_quotes(child.name_), failure);
  return child;
}

Result<std::size_t> ChildProcess::read_some(std::span<std::byte> bytes) {
  while (true) {
    const ssize_t count = ::read(output_, bytes.data(), bytes.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) return system_error("cannot read from " + in_quotes(name_), errno);
  }
}

Result<bool> ChildProcess::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const Result<std::size_t> count = read_some(bytes);
    if (!count) return count.error();
    if (*count == 0) {
      Result<bool> ended = finish();
      if (!ended) return ended;
      return Error{ErrorKind::file, fmt::format("{} gave too few bytes", in_quotes(name_))};
    }
    bytes = bytes.subspan(*count);
  }
  return true;
}

void ChildProcess::wait_for_end(bool block) {
  while (process_ > 0) {
    const pid_t ended = ::waitpid(process_, &status_, block ? 0 : WNOHANG);
    if (ended == process_) process_ = -1;
    if (!block && ended == 0) return;
    if (ended < 0 && errno != EINTR) process_ = -1;
  }
}

bool ChildProcess::is_running() {
  wait_for_end(false);
  return process_ > 0;
}

std::string ChildProcess::last_line() const {
  constexpr off_t most = 4096;
  const off_t size = ::lseek(errors_, 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, size - most);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - begin)), '\0');
  const ssize_t count = ::pread(errors_, text.data(), text.size(), begin);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

Result<bool> ChildProcess::finish() {
  wait_for_end(true);
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return true;
  const std::string line = last_line();
  constexpr std::size_t longest_line = 400;
  if (!line.empty()) return Error{ErrorKind::file, printable(line, longest_line)};
  const std::string how = WIFSIGNALED(status_)
                              ? fmt::format("was ended by signal {}", WTERMSIG(status_))
                              : fmt::format("failed with status {}", WEXITSTATUS(status_));
  return Error{ErrorKind::file, fmt::format("{} {}", in_quotes(name_), how)};
}

}  // namespace kvsim
