// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exact_value.h"
#include "cli/options.h"
#include "cli/output.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/rounding.h"

/// The parts of `kvsim eval`: which operations there are, and what one evaluation says.
namespace kvsim {

/// An operand: the text given, and the code it was read as (ties to even).
struct Operand {
  std::string name;  ///< "a"; "a[2]" in a list
  std::string text;
  const softfloat::NamedFormat* format = nullptr;
  softfloat::Rounded value;
};

/// One evaluated operation.
struct Evaluation {
  std::string operation;
  std::vector<Operand> operands;
  const softfloat::NamedFormat* format = nullptr;  ///< of the result
  softfloat::Rounded result;
  /// compare and compare_signaling: the answer, in place of `result.bits`.
  std::optional<softfloat::Ordering> ordering;
  ExactValue exact;
  /// True where the result is the exact value rounded to the format, so that an error in ulp means
  /// something (not for round_to_integral).
  bool has_error = true;
  Json input;        ///< the options that hold beside the operands
  std::string tree;  ///< dot and sum with --tree: canonical text of the order's tree
  std::string tree_digest;
};

/// One operation of `kvsim eval OP A B C`.
struct Operation {
  std::string_view name;
  int operand_count = 1;
  bool is_defined_for_e8m0 = false;
  bool rounds = true;  ///< false: the operation takes no rounding, overflow or subnormal options
  void (*evaluate)(Evaluation& evaluation, const softfloat::Mode& mode);
};

/// Every operation on single numbers; dot and sum are apart.
[[nodiscard]] std::span<const Operation> operations();

/// Names of all operations, dot and sum included.
[[nodiscard]] std::vector<std::string_view> operation_names();

/// Reads a number; the error names the operand, the text and what is accepted.
[[nodiscard]] Result<Operand> read_operand(std::string name, std::string_view text,
                                           const softfloat::NamedFormat& format);

/// `eval dot` and `eval sum`.
[[nodiscard]] Result<Evaluation> evaluate_sum(std::string_view operation,
                                              const ParsedOptions& options,
                                              const softfloat::Mode& mode);

/// Tables, headline and JSON of an evaluation.
[[nodiscard]] Report evaluation_report(const Evaluation& evaluation);

/// The ordering's name: "less", "equal", "greater" or "unordered".
[[nodiscard]] std::string_view ordering_name(softfloat::Ordering ordering);

}  // namespace kvsim
