// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

namespace kvsim::gpu {

/// Functions of one binary32 that a GPU approximates by an instruction.
enum class ElementaryFunction : std::uint8_t { ex2, rcp, rsqrt, lg2 };

/// One row of the table of these functions.
struct ElementaryRow {
  std::string_view name;         ///< "ex2"
  ElementaryFunction function;   ///< what is computed
  std::string_view instruction;  ///< in PTX: "ex2.approx.ftz.f32"
  std::string_view inputs;       ///< what entry i of a table is computed of, n entries
  int halves;                    ///< rows of the table: binary exponents of its inputs
  int most_bits;                 ///< log2 of the entries of a row, at most
  std::string_view rule;         ///< how other arguments follow from the table, if the rule holds
};
[[nodiscard]] std::span<const ElementaryRow> elementary_rows();

/// The inputs of a table of halves × 2^bits entries.
[[nodiscard]] std::vector<float> table_inputs(const ElementaryRow& row, int bits);

/// The correctly rounded result; subnormal arguments and results are zeros of their sign.
[[nodiscard]] float correctly_rounded(ElementaryFunction function, float x);

/// Something that computes such a function of many numbers.
using ElementaryCall = std::function<Result<std::vector<float>>(std::span<const float>)>;

/// A table, and what else was found.
struct ElementaryTable {
  std::vector<float> values;      ///< [halves, 2^bits]
  std::uint64_t not_rounded = 0;  ///< entries other than the correctly rounded ones
  double largest_error = 0;       ///< of an entry, in units of its correctly rounded value
  std::size_t tried = 0;          ///< other arguments …
  std::size_t by_rule = 0;        ///< … that follow from the table by the rule
};

/// Computes the table and tries the rule on other arguments: of all sizes, as `seed` says. Requires
/// bits between 1 and row.most_bits. Errors are those of the call.
[[nodiscard]] Result<ElementaryTable> capture_table(const ElementaryRow& row, int bits,
                                                    std::uint64_t seed, const ElementaryCall& call);

}  // namespace kvsim::gpu
