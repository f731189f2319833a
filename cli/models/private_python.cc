// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/models/private_python.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/model_places.h"
#include "model/checkpoint.h"
#include "model/mapped_file.h"
#include "model/quote.h"
#include "softfloat/sha256.h"

namespace kvsim {
namespace {

/// Whether scripts/models/python has its environment: it is named after the packages that it holds.
bool is_made(const std::string& cache) {
  const Result<MappedFile> requirements = MappedFile::open(script_path("models/requirements.txt"));
  if (!requirements) return false;
  constexpr std::size_t digits = 12;
  std::error_code none;
  return std::filesystem::exists(
      fmt::format("{}/python-{}", cache, sha256(requirements->bytes()).substr(0, digits)), none);
}

}  // namespace

Result<PrivatePython> PrivatePython::make(const std::string& cache,
                                          const std::function<void(std::string)>& note) {
  if (cache.empty()) {
    return Error{ErrorKind::file,
                 "no cache folder is known; accepted: an absolute path in KVSIM_CACHE, "
                 "XDG_CACHE_HOME or HOME"};
  }
  if (!is_made(cache)) {
    note(fmt::format("making a private Python with gguf and numpy in {}, once", cache));
  }
  PrivatePython python(cache);
  Result<ChildProcess> child = python.run({"-c", ""});
  if (!child) return child.error();
  if (Result<bool> done = child->finish(); !done) return done.error();
  return python;
}

Result<ChildProcess> PrivatePython::script(std::string_view name,
                                           const std::vector<std::string>& arguments,
                                           std::string_view input) const {
  std::vector<std::string> all{script_path(fmt::format("models/{}", name))};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all, input);
}

Result<ChildProcess> PrivatePython::run(const std::vector<std::string>& arguments,
                                        std::string_view input,
                                        const std::vector<std::string>& environment) const {
  std::vector<std::string> all{script_path("models/python"), cache_};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return ChildProcess::start(all, input, environment);
}

Result<ImportedModel> import_into(const GgufFile& file, const PrivatePython& python,
                                  const std::function<void(double)>& progress,
                                  FolderWriter& folder) {
  const Error unread{ErrorKind::file, fmt::format("{}: cannot be read by the gguf package: ",
                                                  quote_path(file.path()))};
  const auto named = [&](const Error& error) {
    return Error{ErrorKind::file, unread.message + error.message};
  };
  std::string names;
  for (const std::string& name : file.tensor_names()) names += name + "\n";
  Result<ChildProcess> child = python.script("dequantise_gguf.py", {file.path()}, names);
  if (!child) return child.error();
  const auto source = [&](std::span<float> out) -> Result<bool> {
    Result<bool> read = child->read(std::as_writable_bytes(out));
    if (!read) return named(read.error());
    return read;
  };
  if (Result<bool> done = import_gguf(file, source, progress, folder); !done) return done.error();
  if (Result<bool> ended = child->finish(); !ended) return named(ended.error());
  const Result<Checkpoint> checkpoint = load_checkpoint(folder.partial());
  if (!checkpoint) return checkpoint.error();
  ImportedModel model;
  model.identity = checkpoint->identity();
  for (const CheckpointFile& each : checkpoint->files()) {
    model.bytes += each.mapping.bytes().size();
  }
  model.parameters = file.elements();
  return model;
}

}  // namespace kvsim
