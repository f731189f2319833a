// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "gpu/backend.h"
#include "gpu/crosscheck/check.h"
#include "gpu/crosscheck/check_data.h"
#include "gpu/crosscheck/decoder_check.h"
#include "model/checkpoint.h"
#include "sim/dispatch_choice.h"
#include "softfloat/result.h"

namespace kvsim {

/// The options of the command.
[[nodiscard]] std::span<const OptionSpec> crosscheck_option_rows();

/// What both forms of the command are asked.
struct CrosscheckCommon {
  std::string model;  ///< or where the sizes come from
  DispatchChoice dispatch;
  std::string storage;  ///< name of the format
  std::uint64_t seed = 1;
};

/// One operator with its numbers.
struct CrosscheckCase {
  gpu::Check check;
  std::string data;                      ///< "gaussian", "cancel" or "captured"
  std::vector<gpu::Tensor> inputs = {};  ///< of captured data; otherwise drawn when they are needed
};

/// Operators of a back end.
struct CrosscheckRequest {
  CrosscheckCommon common;
  std::unique_ptr<gpu::Backend> backend;
  bool revealed = false;   ///< orders are revealed instead of those of the dispatch
  bool named_ops = false;  ///< --op is given: what is not offered is an error
  std::vector<CrosscheckCase> cases;
};
[[nodiscard]] Result<CrosscheckRequest> crosscheck_request(const ParsedOptions& options);

/// A whole decoder.
struct EndToEndRequest {
  CrosscheckCommon common;
  Checkpoint checkpoint;
  gpu::DecoderCheckOptions options;
};
[[nodiscard]] Result<EndToEndRequest> end_to_end_request(const ParsedOptions& options);

}  // namespace kvsim
