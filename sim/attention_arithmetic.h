// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"

namespace kvsim {

/// The formats of one attention computation and what is rounded to storage on the way.
struct AttentionArithmetic {
  softfloat::Format storage = softfloat::binary16;      ///< q, k, v and whatever is rounded below
  softfloat::Format accumulator = softfloat::binary32;  ///< sums, scale, softmax
  Product product = Product::rounded;
  bool round_scores = true;  ///< scaled scores are rounded to storage
  bool round_p = true;       ///< softmax probabilities are rounded to storage
  bool round_out = true;     ///< outputs are rounded to storage

  friend bool operator==(const AttentionArithmetic&, const AttentionArithmetic&) = default;
};

/// The three sums of attention, each in its own order.
struct AttentionOrders {
  Order scores;   ///< q·k over head_dim
  Order row_sum;  ///< the softmax denominator over the visible keys
  Order values;   ///< P·V over the visible keys
};

}  // namespace kvsim
