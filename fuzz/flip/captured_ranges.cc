// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "fuzz/flip/ranges.h"
#include "model/attention_tensors.h"
#include "softfloat/host.h"

/// Ranges of numbers as a capture has them.
namespace kvsim::fuzz {
namespace {

Result<ValueRange> measured(const CodeView& codes, std::int64_t size, std::string_view name) {
  ValueRange range{0, 0};
  double squares = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = softfloat::to_double(codes.format(), codes[i]);
    if (!std::isfinite(x)) {
      return Error{
          ErrorKind::usage,
          fmt::format("{} holds {} at element {}; finite numbers are accepted", name, x, i)};
    }
    range.largest = std::max(range.largest, std::abs(x));
    squares += x * x;
  }
  if (range.largest == 0) {
    return Error{ErrorKind::usage, fmt::format("{} holds zeros alone: it has no range", name)};
  }
  range.root_mean_square = std::sqrt(squares / static_cast<double>(size));
  return range;
}

}  // namespace

Result<ValueRanges> captured_ranges(const std::string& path) {
  const auto tensors = load_attention(path);
  if (!tensors) return tensors.error();
  const AttentionSizes& sizes = tensors->sizes();
  const std::int64_t queries = sizes.query_heads * sizes.query_len * sizes.head_dim;
  const std::int64_t keys = sizes.kv_heads * sizes.kv_len * sizes.head_dim;
  struct Tensor {
    CaseTensor tensor;
    const CodeView& codes;
    std::int64_t size;
  };
  ValueRanges ranges = default_ranges();
  for (const Tensor& each :
       {Tensor{CaseTensor::q, tensors->q(), queries}, Tensor{CaseTensor::k, tensors->k(), keys},
        Tensor{CaseTensor::v, tensors->v(), keys}}) {
    const auto range = measured(each.codes, each.size, to_string(each.tensor));
    if (!range) return range.error();
    ranges.tensors[static_cast<std::size_t>(each.tensor)] = *range;
  }
  ranges.tensors[static_cast<std::size_t>(CaseTensor::state)] = ranges[CaseTensor::v];
  ranges.source = path;
  return ranges;
}

}  // namespace kvsim::fuzz
