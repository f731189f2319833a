// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/models/child_process.h"
#include "model/folder_writer.h"
#include "model/gguf_import.h"
#include "softfloat/result.h"

namespace kvsim {

/// The private Python of scripts/models: made in the cache folder on first use.
class PrivatePython {
 public:
  /// Makes it where it is not there yet. Error (file): no cache folder is known, no Python with
  /// venv and pip, no way to the Python package index.
  /// `note` is told once, before that takes its time.
  [[nodiscard]] static Result<PrivatePython> make(const std::string& cache,
                                                  const std::function<void(std::string)>& note);

  /// Starts a script of scripts/models with these arguments.
  [[nodiscard]] Result<ChildProcess> script(std::string_view name,
                                            const std::vector<std::string>& arguments,
                                            std::string_view input = {}) const;
  /// Starts Python itself with these arguments.
  [[nodiscard]] Result<ChildProcess> run(const std::vector<std::string>& arguments,
                                         std::string_view input = {},
                                         const std::vector<std::string>& environment = {}) const;

 private:
  explicit PrivatePython(std::string cache) : cache_(std::move(cache)) {}
  std::string cache_;
};

/// What an import says of itself.
struct ImportedModel {
  std::string identity;     ///< SHA-256 of model.safetensors
  std::uint64_t bytes = 0;  ///< of model.safetensors
  std::int64_t parameters = 0;
};

/// Dequantises with `python`, writes the model into `folder` and reads it back once, as every other
/// command will. The caller finishes the folder.
[[nodiscard]] Result<ImportedModel> import_into(const GgufFile& file, const PrivatePython& python,
                                                const std::function<void(double)>& progress,
                                                FolderWriter& folder);

}  // namespace kvsim
