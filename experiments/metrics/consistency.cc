// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/consistency.h"

#include <fmt/format.h>

#include <cstddef>

namespace kvsim::metrics {
namespace {

std::size_t place(Consistency consistency) { return static_cast<std::size_t>(consistency); }

}  // namespace

std::string_view to_text(Consistency consistency) {
  constexpr std::array<std::string_view, consistencies> names = {"always", "sometimes", "never"};
  return names[place(consistency)];
}

Result<Consistency> consistency_of(const statistics::Count& runs) {
  if (runs.successes < 0 || runs.successes > runs.trials) {
    return Error{ErrorKind::usage, fmt::format("{} right of {} runs; accepted: 0 or more, not more "
                                               "than the runs",
                                               runs.successes, runs.trials)};
  }
  if (runs.trials == 0) return Error{ErrorKind::cannot_tell, "a prompt without runs"};
  if (runs.successes == 0) return Consistency::never;
  return runs.successes == runs.trials ? Consistency::always : Consistency::sometimes;
}

std::int64_t ConsistencyTable::of_first(Consistency consistency) const {
  std::int64_t sum = 0;
  for (const std::int64_t count : prompts[place(consistency)]) sum += count;
  return sum;
}

std::int64_t ConsistencyTable::of_second(Consistency consistency) const {
  std::int64_t sum = 0;
  for (const auto& row : prompts) sum += row[place(consistency)];
  return sum;
}

std::int64_t ConsistencyTable::changed() const {
  std::int64_t sum = 0;
  for (std::size_t first = 0; first < consistencies; ++first) {
    for (std::size_t second = 0; second < consistencies; ++second) {
      if (first != second) sum += prompts[first][second];
    }
  }
  return sum;
}

Result<ConsistencyTable> compare_consistency(std::span<const statistics::Count> first,
                                             std::span<const statistics::Count> second) {
  if (first.size() != second.size()) {
    return Error{ErrorKind::usage, fmt::format("{} prompts of one arm and {} of the other; "
                                               "accepted: the same prompts",
                                               first.size(), second.size())};
  }
  ConsistencyTable table;
  for (std::size_t prompt = 0; prompt < first.size(); ++prompt) {
    const Result<Consistency> a = consistency_of(first[prompt]);
    const Result<Consistency> b = consistency_of(second[prompt]);
    for (const Result<Consistency>* side : {&a, &b}) {
      if (*side) continue;
      return Error{side->error().kind, fmt::format("prompt {}: {}", prompt, side->error().message)};
    }
    ++table.prompts[place(*a)][place(*b)];
  }
  return table;
}

}  // namespace kvsim::metrics
