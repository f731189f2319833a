// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cli/sink.h"
#include "model/folder_writer.h"
#include "softfloat/result.h"

namespace kvsim {

/// A folder that is being written, and that Ctrl-C (and SIGTERM) remove until it is finished.
class ModelFolder {
 public:
  /// Errors as of FolderWriter::make.
  [[nodiscard]] static Result<std::unique_ptr<ModelFolder>> make(const std::string& target) {
    const SignalsWait wait;
    Result<FolderWriter> writer = FolderWriter::make(target);
    if (!writer) return writer.error();
    return std::unique_ptr<ModelFolder>(new ModelFolder(std::move(*writer)));
  }

  [[nodiscard]] FolderWriter& writer() { return writer_; }

 private:
  explicit ModelFolder(FolderWriter writer)
      : writer_(std::move(writer)), unfinished_(writer_.partial()) {}

  FolderWriter writer_;
  UnfinishedFolder unfinished_;
};

}  // namespace kvsim
