// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "cli/eval.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounded;

const Format& format_of(const Evaluation& evaluation) {
  return evaluation.operands.front().format->format;
}
Bits bits(const Evaluation& evaluation, std::size_t i) { return evaluation.operands[i].value.bits; }
ExactValue exact(const Evaluation& evaluation, std::size_t i) {
  return exact_value(format_of(evaluation), bits(evaluation, i));
}

void add(Evaluation& e, const Mode& mode) {
  e.result = softfloat::add(format_of(e), bits(e, 0), bits(e, 1), mode);
  e.exact = exact_add(exact(e, 0), exact(e, 1));
}

void sub(Evaluation& e, const Mode& mode) {
  e.result = softfloat::sub(format_of(e), bits(e, 0), bits(e, 1), mode);
  e.exact = exact_add(exact(e, 0), exact_negated(exact(e, 1)));
}

void mul(Evaluation& e, const Mode& mode) {
  e.result = softfloat::mul(format_of(e), bits(e, 0), bits(e, 1), mode);
  e.exact = exact_multiply(exact(e, 0), exact(e, 1));
}

void div(Evaluation& e, const Mode& mode) {
  e.result = softfloat::div(format_of(e), bits(e, 0), bits(e, 1), mode);
  e.exact = exact_divide(exact(e, 0), exact(e, 1));
}

void sqrt(Evaluation& e, const Mode& mode) {
  e.result = softfloat::sqrt(format_of(e), bits(e, 0), mode);
  e.exact = exact_square_root(exact(e, 0));
}

void fma(Evaluation& e, const Mode& mode) {
  e.result = softfloat::fma(format_of(e), bits(e, 0), bits(e, 1), bits(e, 2), mode);
  e.exact = exact_add(exact_multiply(exact(e, 0), exact(e, 1)), exact(e, 2));
}

void convert(Evaluation& e, const Mode& mode) {
  e.result = softfloat::convert(e.format->format, format_of(e), bits(e, 0), mode);
  e.exact = exact(e, 0);
}

void round_to_integral(Evaluation& e, const Mode& mode) {
  e.result = softfloat::round_to_integral(format_of(e), bits(e, 0), mode);
  e.exact = exact(e, 0);
  e.has_error = false;
}

void compare(Evaluation& e, const Mode& /*mode*/) {
  const softfloat::Compared compared = softfloat::compare(format_of(e), bits(e, 0), bits(e, 1));
  e.ordering = compared.ordering;
  e.result.flags = compared.flags;
}

void compare_signaling(Evaluation& e, const Mode& /*mode*/) {
  const softfloat::Compared compared =
      softfloat::compare_signaling(format_of(e), bits(e, 0), bits(e, 1));
  e.ordering = compared.ordering;
  e.result.flags = compared.flags;
}

// The operations that choose or count instead of rounding: the result is exact by definition.
template <Rounded (*function)(const Format&, Bits, Bits)>
void choose(Evaluation& e, const Mode& /*mode*/) {
  e.result = function(format_of(e), bits(e, 0), bits(e, 1));
  e.exact = exact_value(format_of(e), e.result.bits);
}

template <Rounded (*function)(const Format&, Bits)>
void step(Evaluation& e, const Mode& /*mode*/) {
  e.result = function(format_of(e), bits(e, 0));
  e.exact = exact_value(format_of(e), e.result.bits);
}

constexpr std::array operation_rows{
    Operation{"add", 2, false, true, add},
    Operation{"sub", 2, false, true, sub},
    Operation{"mul", 2, true, true, mul},
    Operation{"div", 2, true, true, div},
    Operation{"sqrt", 1, false, true, sqrt},
    Operation{"fma", 3, false, true, fma},
    Operation{"convert", 1, true, true, convert},
    Operation{"compare", 2, true, false, compare},
    Operation{"compare_signaling", 2, true, false, compare_signaling},
    Operation{"minimum", 2, false, false, choose<softfloat::minimum>},
    Operation{"maximum", 2, false, false, choose<softfloat::maximum>},
    Operation{"minimum_number", 2, false, false, choose<softfloat::minimum_number>},
    Operation{"maximum_number", 2, false, false, choose<softfloat::maximum_number>},
    Operation{"next_up", 1, false, false, step<softfloat::next_up>},
    Operation{"next_down", 1, false, false, step<softfloat::next_down>},
    Operation{"round_to_integral", 1, false, true, round_to_integral},
};

}  // namespace

std::span<const Operation> operations() { return operation_rows; }

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  names.reserve(operation_rows.size() + 2);
  for (const Operation& operation : operation_rows) names.push_back(operation.name);
  names.emplace_back("dot");
  names.emplace_back("sum");
  return names;
}

Result<Operand> read_operand(std::string name, std::string_view text,
                             const softfloat::NamedFormat& format) {
  const Result<Rounded> value = softfloat::parse_number(format.format, text);
  if (!value) {
    return Error{value.error().kind, fmt::format("operand {}: {}", name, value.error().message)};
  }
  return Operand{std::move(name), std::string(text), &format, *value};
}

}  // namespace kvsim
