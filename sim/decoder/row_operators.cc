// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/row_operators.h"

namespace kvsim::decoder {

std::int64_t buffer_width(const DecoderShape& shape, Buffer buffer) {
  switch (buffer) {
    case Buffer::query:
    case Buffer::attended:
      return shape.query_heads * shape.head_dim;
    case Buffer::key:
    case Buffer::value:
      return shape.kv_heads * shape.head_dim;
    case Buffer::gate:
    case Buffer::up:
      return shape.ffn;
    case Buffer::hidden:
    case Buffer::normed:
    case Buffer::branch:
      break;
  }
  return shape.hidden;
}

Result<std::unique_ptr<RowOperators>> make_operators(const OperatorSetup& setup) {
  if (setup.dispatch.arithmetic == DispatchArithmetic::binary64) return make_wide_operators(setup);
  return make_kernel_operators(setup);
}

}  // namespace kvsim::decoder
