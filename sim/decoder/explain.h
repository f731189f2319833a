// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/decoder/launch.h"
#include "sim/decoder/weights_view.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch_choice.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Which kernel computes which operator of a pass, without computing it.
namespace kvsim {

/// One operator of a pass.
struct OperatorChoice {
  std::string operation;  ///< "query", "attention (window 512)"
  std::string line;       ///< of the dispatch, as DispatchChoice::set() takes it: "linear.m1"
  std::string shape;      ///< "1 × 576 × 1536": rows, terms, outputs
  std::string kernel;     ///< "h100-splitk"
  std::string detail;     ///< order of the sums, splits and blocks, formats; may be empty

  friend bool operator==(const OperatorChoice&, const OperatorChoice&) = default;
};

/// What is explained: `rows` rows behind `cached` ones.
struct PassSizes {
  std::int64_t cached = 0;
  std::int64_t rows = 1;
  DecoderLaunch launch = {};
  /// The model's, whose formats hold where the dispatch sets none (all layers' are taken to be the
  /// first one's); null: weights have the format of what they multiply.
  const DecoderWeights* weights = nullptr;
};

/// The operators of one pass in the order in which they run, those of a layer once; layers with a
/// window and layers without one are told apart at attention. The head computes one row. Errors
/// (usage): a kernel that cannot do the pass in its formats, sizes that cannot be.
[[nodiscard]] Result<std::vector<OperatorChoice>> operator_choices(const DecoderShape& shape,
                                                                   const DispatchChoice& dispatch,
                                                                   const softfloat::Format& storage,
                                                                   const PassSizes& pass);

/// The same operator of two passes or arms.
struct OperatorPair {
  OperatorChoice first;
  OperatorChoice second;
  bool differs = false;  ///< in kernel or detail
};

/// Side by side, operator by operator; both are of one model.
[[nodiscard]] std::vector<OperatorPair> operator_pairs(const std::vector<OperatorChoice>& first,
                                                       const std::vector<OperatorChoice>& second);

}  // namespace kvsim
