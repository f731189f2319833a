// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/sum_classes.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <utility>

#include "gpu/reveal/cancel_data.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using Signature = std::vector<std::uint32_t>;

/// Numbers with the same signature, groups in the order of their first member.
std::vector<std::vector<std::int64_t>> grouped(const std::vector<Signature>& signatures) {
  std::map<Signature, std::size_t> known;
  std::vector<std::vector<std::int64_t>> groups;
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    const auto [found, is_new] = known.emplace(signatures[i], groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(static_cast<std::int64_t>(i));
  }
  return groups;
}

}  // namespace

Result<SumClasses> find_sum_classes(Reduction& reduction, std::uint64_t seed, int calls) {
  const std::int64_t rows = reduction.rows();
  const std::int64_t columns = reduction.columns();
  std::vector<Signature> of_rows(index(rows));
  std::vector<Signature> of_columns(index(columns));
  SumClasses found;
  for (int call = 0; call < calls; ++call) {
    const CallData data =
        cancel_data(reduction, DataKind::cancel, seed, static_cast<std::uint64_t>(call), true);
    const auto sums = reduction.run(data.left, data.right);
    if (!sums) return sums.error();
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const auto bits = std::bit_cast<std::uint32_t>((*sums)[index(i * columns + j)]);
        of_rows[index(i)].push_back(bits);
        of_columns[index(j)].push_back(bits);
      }
    }
    if (call > 0) continue;
    const auto again = reduction.run(data.left, data.right);
    if (!again) return again.error();
    found.repeatable =
        std::equal(sums->begin(), sums->end(), again->begin(), again->end(), [](float a, float b) {
          return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
        });
  }
  for (const auto& row_group : grouped(of_rows)) {
    for (const auto& column_group : grouped(of_columns)) {
      const SumClass one{row_group, column_group};
      const auto place = std::upper_bound(
          found.classes.begin(), found.classes.end(), one, [](const auto& a, const auto& b) {
            return a.rows.size() * a.columns.size() > b.rows.size() * b.columns.size();
          });  // the largest first
      found.classes.insert(place, one);
    }
  }
  return found;
}

}  // namespace kvsim::gpu
