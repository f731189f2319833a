// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <cmath>

#include "cli/eval.h"
#include "cli/mode_options.h"
#include "cli/printable.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Flags;
using softfloat::NamedFormat;
using softfloat::Ordering;
using Kind = ExactValue::Kind;

// More operands than this are counted instead of listed for people; JSON has them all.
constexpr std::size_t listed_operands = 32;

std::vector<Cell> number_row(std::string name, const NamedFormat& format, Bits bits) {
  return {Cell(std::move(name)), Cell(format.name),
          Cell(softfloat::to_bits_text(format.format, bits)),
          Cell(softfloat::to_hex_float(format.format, bits)),
          Cell(softfloat::to_decimal(format.format, bits))};
}

bool was_rounded(const Operand& operand) {
  const Flags& flags = operand.value.flags;
  return flags.inexact || flags.overflow || flags.invalid;
}

Json operand_json(const Operand& operand) {
  Json out = Json::object();
  out["name"] = operand.name;
  out["text"] = printable(operand.text);
  out["format"] = operand.format->name;
  out["bits"] = softfloat::to_bits_text(operand.format->format, operand.value.bits);
  out["hex_float"] = softfloat::to_hex_float(operand.format->format, operand.value.bits);
  out["decimal"] = softfloat::to_decimal(operand.format->format, operand.value.bits);
  out["exact"] = !was_rounded(operand);
  return out;
}

std::string ulp_text(const UlpError& error) {
  if (!error.is_defined) return "undefined";
  if (std::isinf(error.value)) return error.value > 0 ? "inf ulp" : "-inf ulp";
  return fmt::format("{:.4g} ulp", error.value);
}

std::string largest_text(const NamedFormat& format) {
  return softfloat::to_decimal(format.format, format.format.max_finite());
}

// Where the exact result lies, seen from the rounded one.
std::string distance_text(const UlpError& error) {
  return fmt::format("the exact result lies {:.3g} ulp {} this one", std::fabs(error.value),
                     error.value < 0 ? "above" : "below");
}

std::string number_sentence(const Evaluation& evaluation, const UlpError& error) {
  const NamedFormat& format = *evaluation.format;
  const Flags& flags = evaluation.result.flags;
  const bool is_nan = softfloat::is_nan(format.format, evaluation.result.bits);
  if (flags.division_by_zero) {
    return "Division by zero: a finite number over zero has no finite quotient.";
  }
  if (flags.overflow) {
    return fmt::format("Overflow: beyond {}, the largest finite number of {}.",
                       largest_text(format), format.name);
  }
  if (flags.invalid) {
    return is_nan ? "Invalid: no number answers this, so the result is NaN."
                  : fmt::format("Invalid: no number of {} answers this.", format.name);
  }
  if (is_nan) return "The result is NaN because an operand is.";
  if (!evaluation.has_error) {
    return flags.inexact ? "Inexact: the operand is not an integer." : "The operand is an integer.";
  }
  if (!flags.inexact && error.value == 0) return "The result is exact.";
  if (std::isinf(error.value)) return "The exact result is infinite.";
  if (flags.underflow) {
    return fmt::format("Underflow: tiny and inexact; {}.", distance_text(error));
  }
  if (error.value == 0) return "Rounded on the way, yet the result equals the exact one.";
  return fmt::format("Inexact: {}.", distance_text(error));
}

std::string ordering_sentence(const Evaluation& evaluation) {
  switch (evaluation.ordering.value_or(Ordering::unordered)) {
    case Ordering::less:
      return "a is less than b.";
    case Ordering::equal:
      return "a equals b.";
    case Ordering::greater:
      return "a is greater than b.";
    case Ordering::unordered:
      break;
  }
  return "a and b are unordered, because one of them is NaN.";
}

Table operand_table(const Evaluation& evaluation) {
  Table table;
  table.columns = {{"name", "number", "", Align::left},
                   {"format", "format", "", Align::left},
                   {"bits", "bits", "", Align::left},
                   {"hex_float", "hex-float", "", Align::left},
                   {"decimal", "decimal", "", Align::left}};
  const std::size_t count = evaluation.operands.size();
  for (std::size_t i = 0; i < count && i < listed_operands; ++i) {
    const Operand& operand = evaluation.operands[i];
    table.rows.push_back(number_row(operand.name, *operand.format, operand.value.bits));
    if (was_rounded(operand)) {
      table.notes.push_back(fmt::format("{} is {}, rounded to {}", operand.name,
                                        printable(operand.text), operand.format->name));
    }
  }
  if (count > listed_operands) {
    table.notes.push_back(fmt::format("{} more operands are not listed", count - listed_operands));
  }
  if (!evaluation.ordering) {
    table.rows.push_back(number_row("result", *evaluation.format, evaluation.result.bits));
  }
  return table;
}

}  // namespace

std::string_view ordering_name(Ordering ordering) {
  switch (ordering) {
    case Ordering::less:
      return "less";
    case Ordering::equal:
      return "equal";
    case Ordering::greater:
      return "greater";
    case Ordering::unordered:
      break;
  }
  return "unordered";
}

Report evaluation_report(const Evaluation& evaluation) {
  Report report;
  report.schema = "kvsim.eval/1";
  report.command = "eval " + evaluation.operation;
  report.input = evaluation.input;
  report.input["operands"] = Json::array();
  for (const Operand& operand : evaluation.operands) {
    report.input["operands"].push_back(operand_json(operand));
  }
  report.tables.push_back(operand_table(evaluation));
  Table facts;
  facts.show_headings = false;
  facts.columns = {{"fact", "fact", "", Align::left}, {"value", "value", "", Align::left}};
  facts.rows.push_back({Cell("flags"), Cell(flags_text(evaluation.result.flags))});

  Json& result = report.result;
  result = Json::object();
  if (evaluation.ordering) {
    report.headline = ordering_sentence(evaluation);
    result["ordering"] = ordering_name(*evaluation.ordering);
    result["flags"] = flags_json(evaluation.result.flags);
    report.tables.push_back(std::move(facts));
    return report;
  }
  const softfloat::Format& format = evaluation.format->format;
  const Bits bits = evaluation.result.bits;
  const UlpError error = ulp_error(format, bits, evaluation.exact);
  report.headline = number_sentence(evaluation, error);
  result["format"] = evaluation.format->name;
  result["bits"] = softfloat::to_bits_text(format, bits);
  result["hex_float"] = softfloat::to_hex_float(format, bits);
  result["decimal"] = softfloat::to_decimal(format, bits);
  result["flags"] = flags_json(evaluation.result.flags);
  result["exact"] = to_text(evaluation.exact);
  const bool has_error = evaluation.has_error && error.is_defined;
  result["error_ulp"] = has_error ? json_number(error.value) : Json();
  facts.rows.push_back({Cell("exact value"), Cell(to_text(evaluation.exact))});
  if (has_error) facts.rows.push_back({Cell("error"), Cell(ulp_text(error))});
  if (!evaluation.tree.empty()) {
    facts.rows.push_back({Cell("tree"), Cell(evaluation.tree)});
    facts.rows.push_back({Cell("tree sha256"), Cell(evaluation.tree_digest)});
    result["tree"] = Json{{"text", evaluation.tree}, {"sha256", evaluation.tree_digest}};
  }
  report.tables.push_back(std::move(facts));
  return report;
}

}  // namespace kvsim
