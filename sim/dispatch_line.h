// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/dispatch.h"

/// The lines of a dispatch as text: what DispatchChoice needs to read them.
namespace kvsim {

/// A number from `least` to `most` that takes the whole text.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least,
                                                       std::int64_t most);

/// A line that names one operator's kernel: where it stands, and which names its table has.
struct OperatorLine {
  std::string_view line;
  std::string_view Dispatch::* kernel;
  std::vector<std::string_view> (*names)();
};

/// Every such line: norm, softmax, rope, activations and the residual stream.
[[nodiscard]] std::span<const OperatorLine> operator_lines();

/// The line of that name; nullptr if there is none.
[[nodiscard]] const OperatorLine* find_operator_line(std::string_view line);

/// The rows that "linear", "linear.m1", "linear.m2-64" or "linear.m65+" stands for; none where the
/// text is no such line.
[[nodiscard]] std::optional<SizeRange> linear_rows(std::string_view line);

/// The choices with `changed` in the place of what they said about its rows.
[[nodiscard]] std::vector<LinearChoice> with_choice(std::span<const LinearChoice> choices,
                                                    const LinearChoice& changed);

/// Every name of a table.
template <class Row>
[[nodiscard]] std::vector<std::string_view> kernel_names(std::span<const Row> rows) {
  std::vector<std::string_view> names;
  names.reserve(rows.size());
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

}  // namespace kvsim
