// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "model/quote.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

/// The text as JSON; nothing if it is not UTF-8.
std::optional<std::string> json_text(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

Error usage(std::string message) { return Error{ErrorKind::usage, std::move(message)}; }

/// Writes everything, however often the system takes only a part; 0 or an errno.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  constexpr std::size_t most_per_call = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(descriptor, bytes.data(), std::min(bytes.size(), most_per_call));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

/// A file under a temporary name that is removed unless it was renamed to its target.
class PartialFile {
 public:
  explicit PartialFile(const std::string& target)
      : target_(target), name_(fmt::format("{}.partial-{}", target, ::getpid())) {
    descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) error_ = errno;
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    if (!renamed_) ::unlink(name_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    if (error_ == 0) error_ = write_all(descriptor_, bytes);
  }

  /// Brings the bytes to the disk and gives the file its name; 0 or the first errno.
  int finish() {
    if (error_ == 0 && ::fsync(descriptor_) != 0) error_ = errno;
    if (error_ == 0 && ::rename(name_.c_str(), target_.c_str()) != 0) error_ = errno;
    if (error_ != 0) return error_;
    renamed_ = true;
    sync_folder();
    return 0;
  }

 private:
  /// Makes the new name durable. Some file systems cannot; the file itself is whole either way.
  void sync_folder() const {
    std::string folder = std::filesystem::path(target_).parent_path().string();
    if (folder.empty()) folder = ".";
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
  }

  std::string target_;
  std::string name_;
  int descriptor_ = -1;
  int error_ = 0;
  bool renamed_ = false;
};

std::string header_json(std::span<const Tensor> tensors, std::span<const std::uint64_t> sizes,
                        std::span<const MetadataEntry> metadata, std::string& problem) {
  std::string header = "{";
  const auto add_text = [&](const std::string& text) {
    if (auto json = json_text(text)) {
      header += *json;
    } else if (problem.empty()) {
      problem = fmt::format("the text {} is not UTF-8; accepted: UTF-8", quote(text));
    }
  };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const MetadataEntry& entry : metadata) {
      if (&entry != metadata.data()) header += ',';
      add_text(entry.key);
      header += ':';
      add_text(entry.text);
    }
    header += "}";
  }
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (header.size() > 1) header += ',';
    add_text(tensor.name);
    std::vector<std::int64_t> shape = tensor.shape;
    if (mutant_is_on(Mutant::tensor_shape_reversed)) std::ranges::reverse(shape);
    header +=
        fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                    dtype_info(tensor.dtype).name, fmt::join(shape, ","), begin, begin + sizes[i]);
    begin += sizes[i];
  }
  return header + "}";
}

Result<std::string> prefix_of(std::span<const Tensor> tensors,
                              std::span<const MetadataEntry> metadata, bool check_data) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    if (tensor.name == "__metadata__") {
      return usage(
          "tensor \"__metadata__\" has the name of the metadata; accepted: any other name");
    }
    const Result<std::int64_t> size = tensor_bytes(tensor.dtype, tensor.shape);
    if (!size) return usage(fmt::format("tensor {}: {}", quote(tensor.name), size.error().message));
    if (check_data && static_cast<std::uint64_t>(*size) != tensor.bytes.size()) {
      return usage(fmt::format("tensor {}: {} bytes given; accepted: {} for {} {}",
                               quote(tensor.name), tensor.bytes.size(), *size,
                               dtype_info(tensor.dtype).name, shape_text(tensor.shape)));
    }
    sizes.push_back(static_cast<std::uint64_t>(*size));
  }
  std::string problem;
  std::string header = header_json(tensors, sizes, metadata, problem);
  if (!problem.empty()) return usage(std::move(problem));
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string prefix(8, '\0');
  for (std::size_t index = 0; index < 8; ++index) {
    prefix[index] = static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * index));
  }
  prefix += header;
  // What the reader would refuse must not be written: names, limits and all.
  if (Result<bool> readable = check_safetensors_header(std::as_bytes(std::span(prefix)));
      !readable) {
    return usage(readable.error().message);
  }
  return prefix;
}

}  // namespace

Result<std::string> safetensors_prefix(std::span<const Tensor> tensors,
                                       std::span<const MetadataEntry> metadata) {
  return prefix_of(tensors, metadata, true);
}

Result<std::string> safetensors_prefix_of_shapes(std::span<const Tensor> tensors) {
  return prefix_of(tensors, {}, false);
}

Result<std::uint64_t> write_safetensors(const std::string& path, std::span<const Tensor> tensors,
                                        std::span<const MetadataEntry> metadata) {
  const Result<std::string> prefix = safetensors_prefix(tensors, metadata);
  if (!prefix) return prefix.error();
  const auto fail = [&](std::string_view reason) {
    return Error{ErrorKind::file,
                 fmt::format("{}: cannot write: {}; accepted: a path for a regular file in a "
                             "folder that can be written",
                             quote_path(path), reason)};
  };
  if (path.empty() || path.find('\0') != std::string::npos) return fail("not a path");
  std::string target = path;
  std::error_code unresolved;
  if (const auto followed = std::filesystem::canonical(path, unresolved); !unresolved) {
    target = followed.string();
  }
  struct stat status = {};
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return fail("it exists and is not a regular file");
  }
  PartialFile file(target);
  file.write(std::as_bytes(std::span(*prefix)));
  std::uint64_t size = prefix->size();
  for (const Tensor& tensor : tensors) {
    file.write(tensor.bytes);
    size += tensor.bytes.size();
  }
  if (const int code = file.finish(); code != 0) return fail(std::system_category().message(code));
  return size;
}

}  // namespace kvsim
