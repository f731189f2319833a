// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/replay/exp_settings.h"
#include "sim/predict/prediction.h"
#include "softfloat/formats.h"
#include "softfloat/result.h"

namespace kvsim {

/// What `kvsim predict` was asked, and what belongs to it.
struct PredictionRequest {
  PredictionOptions options;  ///< without `progress`
  /// The tensors of --tensors, where they were given; options.captured points to them.
  std::shared_ptr<const AttentionNumbers> captured;
  std::shared_ptr<const ExpSettings> exp;     ///< --exp-table and --exp-ulp
  std::shared_ptr<const ExpTable> exp_table;  ///< that of `exp`, or null; options.exp points to it
  const softfloat::NamedFormat* storage = nullptr;
  std::string shape_source;  ///< where the sizes come from: "--head-dim …", a model, a file
  std::string input_source;  ///< where the attention layer's numbers come from, for people
  std::string input_name;    ///< "gaussian", "outliers" or the path of --tensors
  std::string rope;  ///< "torch-cpu": whose RoPE factors the decoder takes; empty: a kernel's
  std::string rope_setting;                ///< of libtorch for them
  std::vector<std::string> unused_fields;  ///< of --config, which change no arithmetic here
};

/// Reads every option of a prediction. Errors (usage): a size, a name, sizes that do not fit, no
/// shape at all; (file): a configuration, tensors or margins that cannot be read.
[[nodiscard]] Result<PredictionRequest> prediction_request(const ParsedOptions& options);

}  // namespace kvsim
