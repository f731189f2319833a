// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/crosscheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gpu/crosscheck/observed.h"
#include "gpu/crosscheck/shrink.h"
#include "sim/compare.h"

namespace kvsim::gpu {
namespace {

/// "2, 5–7": at most four runs, then how many numbers there are.
std::string runs_of(const std::vector<bool>& marked) {
  std::vector<IndexRange> ranges;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (!marked[i]) continue;
    const auto at = static_cast<std::int64_t>(i);
    if (!ranges.empty() && ranges.back().last == at - 1) {
      ranges.back().last = at;
    } else {
      ranges.push_back({at, at});
    }
  }
  return range_text(ranges, 4);
}

/// Where a result stands: how many rows of how many numbers.
struct ResultShape {
  std::string_view row_name;
  std::string_view column_name;
  std::int64_t columns;
};

ResultShape result_shape(const Check& check) {
  if (check.operation == "linear") return {"rows", "outputs", check.outputs};
  if (check.operation == "sum" || check.operation == "mean") return {"rows", "elements", 1};
  if (check.is_attention()) return {"queries (head by head)", "channels", check.head_dim};
  return {"rows", "elements", check.terms};
}

/// Where the differences lie, if not everywhere.
std::string suspect_of(const Check& check, const std::vector<bool>& differs) {
  const ResultShape shape = result_shape(check);
  const auto columns = static_cast<std::size_t>(shape.columns);
  std::vector<bool> row_marks(differs.size() / columns);
  std::vector<bool> column_marks(columns);
  for (std::size_t i = 0; i < differs.size(); ++i) {
    if (!differs[i]) continue;
    row_marks[i / columns] = true;
    column_marks[i % columns] = true;
  }
  const auto count = [](const std::vector<bool>& marks) { return std::ranges::count(marks, true); };
  if (2 * count(column_marks) <= std::ssize(column_marks)) {
    return fmt::format("{} {} of {}", shape.column_name, runs_of(column_marks), columns);
  }
  if (2 * count(row_marks) <= std::ssize(row_marks)) {
    return fmt::format("{} {} of {}", shape.row_name, runs_of(row_marks), row_marks.size());
  }
  return "everywhere: another order or another rounding";
}

/// Multiply-adds of one run, or as many elements.
std::int64_t work_of(const Check& check) {
  if (check.operation == "linear") return check.rows * check.outputs * check.terms;
  if (!check.is_attention()) return check.rows * check.terms;
  return 2 * check.heads * check.queries * check.keys * check.head_dim;
}

}  // namespace

Result<CheckOutcome> compare_check(Backend& backend, Simulation& simulation, const Check& check,
                                   const std::vector<Tensor>& inputs,
                                   const CompareOptions& options) {
  CheckOutcome outcome;
  // The simulation first: it may have to reveal, and says so where it cannot.
  auto simulated = simulation.run(check, inputs);
  if (!simulated) return simulated.error();
  const auto kernel = simulation.kernel(check);
  if (!kernel) return kernel.error();
  outcome.kernel = *kernel;
  const auto seen = observe(backend, check, inputs);
  if (!seen) return seen.error();
  if (seen->values.size() != simulated->values.size() || seen->format != simulated->format) {
    return Error{ErrorKind::cannot_tell,
                 fmt::format("{}: {} numbers seen and {} simulated, or of other formats",
                             check.operation, seen->values.size(), simulated->values.size())};
  }
  const auto seen_codes = encode_values(seen->format, seen->values);
  const auto simulated_codes = encode_values(seen->format, simulated->values);
  const Comparison comparison = compare_codes(seen->format, seen_codes, simulated_codes);
  outcome.compared = comparison.elements;
  outcome.different = comparison.different;
  outcome.max_ulp = comparison.max_ulp;
  outcome.first = comparison.first;
  if (comparison.different == 0) return outcome;
  const auto first = static_cast<std::size_t>(comparison.first);
  outcome.seen = seen->values[first];
  outcome.simulated = simulated->values[first];
  std::vector<bool> differs(seen->values.size());
  for (std::size_t i = 0; i < differs.size(); ++i) {
    differs[i] = !same_bits(seen->values[i], simulated->values[i]);
  }
  outcome.suspect = suspect_of(check, differs);
  if (options.shrinks) {
    const auto runs =
        static_cast<int>(std::clamp<std::int64_t>(options.most_work / work_of(check), 150, 4000));
    auto failing = shrink(backend, simulation, check, inputs, comparison.first, runs);
    if (!failing) return failing.error();
    outcome.failing = std::move(*failing);
  }
  return outcome;
}

}  // namespace kvsim::gpu
