// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "sim/predict/difference.h"

/// Cells and words that the tables of a prediction share.
namespace kvsim::prediction_tables {

/// A count.
[[nodiscard]] Cell count(std::int64_t value);
/// A number in three digits: "2.04e-04".
[[nodiscard]] Cell figure(double value);
/// A number near 1 in four decimals: "1.0213".
[[nodiscard]] Cell factor(double value);
/// A probability or share as a percentage: "31.2 %".
[[nodiscard]] Cell percentage(double share);
/// A number that the line does not have.
[[nodiscard]] Cell nothing();

/// "31.2 %", "0.0031 %", "0 %".
[[nodiscard]] std::string percent_text(double share);
/// "2.04e-04".
[[nodiscard]] std::string figure_text(double value);
/// A number in two digits, without an exponent where it is readable: "0.061", "1.3", "2.1e-07".
[[nodiscard]] std::string short_text(double value);
/// "1 key", "512 keys".
[[nodiscard]] std::string counted(std::int64_t number, std::string_view one, std::string_view many);

/// The columns of a difference, and its cells: differing, of, share, rel L2, max, max ulp.
void add_difference_columns(Table& table);
void add_difference_cells(std::vector<Cell>& cells, const VectorDifference& difference);

/// A difference as JSON, with its histogram.
[[nodiscard]] Json difference_json(const VectorDifference& difference);

/// Titles, columns with keys and headings; every column but the first `left` ones is aligned right.
[[nodiscard]] Column left_column(std::string key, std::string heading);
[[nodiscard]] Column right_column(std::string key, std::string heading, std::string unit = "");

}  // namespace kvsim::prediction_tables
