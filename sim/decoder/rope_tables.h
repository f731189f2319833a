// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/decoder/rope_source.h"
#include "sim/decoder/row_operators.h"
#include "sim/operators/rope.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::decoder {

/// The tables of one RoPE kernel: layers with equal frequencies share one, and one that is too
/// short is made anew, longer.
class RopeTables {
 public:
  /// `source` may be empty: the kernel makes the tables.
  RopeTables(const RopeKernel& kernel, const softfloat::Format& storage, RopeSource source)
      : kernel_(kernel), storage_(storage), source_(std::move(source)) {}

  /// A table that reaches position `last`; valid until the next call. Errors of make_rope_table()
  /// or of the source.
  [[nodiscard]] Result<const RopeTable*> find(const LayerPosition& layer, std::int64_t head_dim,
                                              std::int64_t last);

 private:
  struct Entry {
    double base = 0;
    std::vector<float> frequencies;
    RopeTable table;
  };

  RopeKernel kernel_;
  softfloat::Format storage_;
  RopeSource source_;
  std::vector<Entry> entries_;
};

}  // namespace kvsim::decoder
