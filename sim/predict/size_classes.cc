// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/size_classes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

namespace kvsim {
namespace {

/// A result and the rules that gave it.
struct Outcome {
  std::vector<float> values;
  SizeClass sizes;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (std::isnan(x) && std::isnan(y)) ||
           std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

void add_size(std::vector<IndexRange>& ranges, std::int64_t size) {
  if (!ranges.empty() && ranges.back().last + 1 == size) {
    ranges.back().last = size;
  } else {
    ranges.push_back({size, size});
  }
}

/// Index of the outcome for a size, computing it where its rule is new.
Result<std::size_t> outcome_of(const SizedOperator& sized, std::int64_t size,
                               std::vector<Outcome>& outcomes) {
  Result<std::string> rule = sized.rule(size);
  if (!rule) return rule.error();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& rules = outcomes[i].sizes.rules;
    if (std::find(rules.begin(), rules.end(), *rule) != rules.end()) return i;
  }
  Result<std::vector<float>> values = sized.values(size);
  if (!values) return values.error();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!same_bits(outcomes[i].values, *values)) continue;
    outcomes[i].sizes.rules.push_back(std::move(*rule));
    return i;
  }
  outcomes.push_back({std::move(*values), {{}, {std::move(*rule)}, {}}});
  return outcomes.size() - 1;
}

}  // namespace

Result<SizeClasses> classify_sizes(const SizedOperator& sized, std::span<const std::int64_t> sizes,
                                   std::int64_t reference) {
  std::vector<Outcome> outcomes;
  // The reference's class is the first.
  const Result<std::size_t> first = outcome_of(sized, reference, outcomes);
  if (!first) return first.error();
  for (const std::int64_t size : sizes) {
    const Result<std::size_t> index = outcome_of(sized, size, outcomes);
    if (!index) return index.error();
    add_size(outcomes[*index].sizes.sizes, size);
  }
  SizeClasses result{sized.question, sized.operator_name, reference, {}};
  for (Outcome& outcome : outcomes) {
    outcome.sizes.from_reference =
        compare_vectors(sized.format, outcome.values, outcomes.front().values);
    result.classes.push_back(std::move(outcome.sizes));
  }
  return result;
}

}  // namespace kvsim
