// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/same_row.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "gpu/reveal/sum_model.h"
#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Standard normal numbers of a format: number i is the same however many there are.
Result<std::vector<float>> normal_numbers(const softfloat::Format& format, std::uint64_t seed,
                                          std::uint64_t stream, std::int64_t count) {
  std::vector<float> numbers(index(count));
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[index(i)] = static_cast<float>(normal(seed, stream, static_cast<std::uint64_t>(i)));
  }
  if (const auto done = round_values(format, numbers, numbers); !done) return done.error();
  return numbers;
}

/// The columns of row 0 whose replay has other bits than the back end gave.
Result<std::int64_t> unlike_replay(const RowAmongOthers& row, std::int64_t terms,
                                   std::span<const float> left, std::span<const float> right) {
  std::int64_t unlike = 0;
  for (const RevealedSums& sums : row.found.classes) {
    if (std::ranges::find(sums.where.rows, 0) == sums.where.rows.end()) continue;
    if (!sums.model) {
      unlike += static_cast<std::int64_t>(sums.where.columns.size());
      continue;
    }
    const SumClass only{{0}, sums.where.columns};
    const auto again = replay(*sums.model, terms, left, right, &only);
    if (!again) return again.error();
    unlike += std::ranges::count_if(only.columns, [&](std::int64_t j) {
      return !same_bits((*again)[index(j)], row.sums[index(j)]);
    });
  }
  return unlike;
}

}  // namespace

Result<std::vector<RowAmongOthers>> compare_row(Backend& backend, ReductionShape shape,
                                                std::span<const std::int64_t> rows,
                                                const RevealOptions& options) {
  const auto weights = normal_numbers(shape.format, options.seed, 1, shape.columns * shape.terms);
  if (!weights) return weights.error();
  std::vector<RowAmongOthers> all;
  all.reserve(rows.size());
  for (const std::int64_t count : rows) {
    shape.rows = count;
    const auto reduction = make_reduction(backend, shape);
    if (!reduction) return reduction.error();
    RowAmongOthers row;
    row.rows = count;
    auto found = reveal(**reduction, options);
    if (!found) return found.error();
    row.found = std::move(*found);
    const auto left = normal_numbers(shape.format, options.seed, 0, count * shape.terms);
    if (!left) return left.error();
    auto sums = (*reduction)->run(*left, *weights);
    if (!sums) return sums.error();
    sums->resize(index(shape.columns));
    row.sums = std::move(*sums);
    row.compared = shape.columns;
    const auto unlike =
        unlike_replay(row, shape.terms, std::span(*left).first(index(shape.terms)), *weights);
    if (!unlike) return unlike.error();
    row.unlike_replay = *unlike;
    const std::vector<float>& first = all.empty() ? row.sums : all.front().sums;
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      if (same_bits(first[index(j)], row.sums[index(j)])) continue;
      if (row.different++ == 0) row.first_different = j;
    }
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace kvsim::gpu
