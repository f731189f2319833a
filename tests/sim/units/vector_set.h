// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Rows d = c + Σ a[k]·b[k] from a safetensors file: a and b [rows, K], c and d [rows].

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/attention_tensors.h"
#include "model/safetensors.h"
#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"

namespace kvsim {

/// The rows of one file.
struct VectorSet {
  std::size_t rows = 0;
  std::size_t k = 0;
  std::vector<softfloat::Bits> a, b, c, d;
};

/// Every code of one tensor of `file`, which must have it.
inline std::vector<softfloat::Bits> codes(const SafetensorsFile& file, const char* name) {
  const Tensor* tensor = file.find(name);
  if (tensor == nullptr) return {};
  const auto format = dtype_info(tensor->dtype).format;
  const CodeView view(*format, tensor->bytes);
  std::vector<softfloat::Bits> out(static_cast<std::size_t>(view.size()));
  view.copy(0, out);
  return out;
}

/// Reads a file; no rows where it cannot be read.
inline VectorSet read_vectors(const std::string& path) {
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  VectorSet set;
  set.a = codes(*file, "a");
  set.b = codes(*file, "b");
  set.c = codes(*file, "c");
  set.d = codes(*file, "d");
  set.rows = set.d.size();
  set.k = set.rows == 0 ? 0 : set.a.size() / set.rows;
  return set;
}

/// d of row `i` as the unit computes it.
inline softfloat::Bits row_result(const MatrixUnit& unit, const VectorSet& set, std::size_t i) {
  const auto part = [&](const std::vector<softfloat::Bits>& codes) {
    return std::span(codes).subspan(i * set.k, set.k);
  };
  return unit_dot(unit, {.a = part(set.a), .b = part(set.b), .c = set.c[i]});
}

/// The rows that the unit gets wrong, and the first of them.
inline std::pair<std::size_t, std::size_t> wrong_rows(const MatrixUnit& unit,
                                                      const VectorSet& set) {
  std::size_t wrong = 0;
  std::size_t first = set.rows;
  for (std::size_t i = 0; i < set.rows; ++i) {
    if (row_result(unit, set, i) == set.d[i]) continue;
    if (wrong++ == 0) first = i;
  }
  return {wrong, first};
}

}  // namespace kvsim
