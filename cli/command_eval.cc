// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/format_option.h"
#include "cli/mode_options.h"
#include "cli/printable.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::NamedFormat;

constexpr std::array eval_options{
    OptionSpec{"--format", "NAME", "format of the operands and the result (not for dot and sum)"},
    OptionSpec{"--to", "NAME", "convert: format of the result"},
    OptionSpec{
        "--rounding", "NAME",
        "ties_to_even (RNE, the default), ties_to_away (RNA), toward_zero (RTZ), "
        "toward_positive (RTP, RUP), toward_negative (RTN, RDN), to_odd (odd) or stochastic"},
    OptionSpec{"--random", "BITS",
               "stochastic: 32 uniform bits, 0 to 4294967295 or 0x0 to 0xffffffff"},
    OptionSpec{"--overflow", "NAME",
               "automatic (default: IEEE 754; NaN where the format has no infinity, the largest "
               "number where it has no NaN either), infinity, saturate or nan"},
    OptionSpec{"--subnormals", "NAME", "keep (default), flush_results, flush_inputs or flush_both"},
    OptionSpec{"--tininess", "NAME", "after_rounding (default) or before_rounding"},
    OptionSpec{"--expect", "NUMBER",
               "exit 1 unless the result is this code: bits, or a number of the result's format; "
               "for compare less, equal, greater or unordered"},
    OptionSpec{"--a", "LIST", "dot and sum: numbers separated by commas, at most 65536"},
    OptionSpec{"--b", "LIST", "dot: as many numbers again"},
    OptionSpec{"--input", "NAME", "dot and sum: format of the numbers"},
    OptionSpec{"--accumulate", "NAME",
               "dot and sum: format of every sum (default: that of --input)"},
    OptionSpec{
        "--order", "ORDER",
        "dot and sum: sequential (default), reverse, perm(3,0,2,1), pairwise, halving, exact, "
        "lanes(W,U), blocks(B), split(S), mma(UNIT), numpy-pairwise, torch-cascade(W), "
        "torch-dot(W); nested "
        "outermost first: split(4)/lanes(16,2); options such as split(4,partials=bf16): "
        "docs/orders.md"},
    OptionSpec{"--tree", "", "dot and sum: print the tree of additions too, and its SHA-256"},
    OptionSpec{"--product", "NAME",
               "dot: rounded (default: each product to the accumulator's format), fused "
               "(fma, starting from fma(a,b,+0)) or exact (rounded only in the sum)"},
};

constexpr std::array<std::string_view, 7> sum_options{
    "--a", "--b", "--input", "--accumulate", "--order", "--product", "--tree"};

Result<const Operation*> find_operation(std::string_view name) {
  const auto rows = operations();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Operation& each) { return each.name == name; });
  if (row != rows.end()) return &*row;
  return unknown_word("OP", name, operation_names());
}

Error not_for(std::string_view option, std::string_view operation, std::string_view accepted) {
  return {ErrorKind::usage,
          fmt::format("{} is given for {}; it is accepted for {}", option, operation, accepted)};
}

// An option that the operation has no use for is a mistake, not a remark.
std::optional<Error> check_applicable(const Operation& operation, const ParsedOptions& options) {
  for (const std::string_view option : sum_options) {
    if (options.has(option)) return not_for(option, operation.name, "dot and sum");
  }
  if (options.has("--to") && operation.name != "convert") {
    return not_for("--to", operation.name, "convert");
  }
  if (operation.rounds) return std::nullopt;
  for (const std::string_view option : mode_option_names()) {
    if (options.has(option)) return not_for(option, operation.name, "operations that round");
  }
  return std::nullopt;
}

Error operand_count_error(const Operation& operation, std::size_t given) {
  return {ErrorKind::usage, fmt::format("{} is given {} operand{}; {} {} accepted", operation.name,
                                        given, given == 1 ? "" : "s", operation.operand_count,
                                        operation.operand_count == 1 ? "is" : "are")};
}

std::optional<Error> check_e8m0(const Operation& operation, const NamedFormat& format) {
  if (operation.is_defined_for_e8m0 || format.format.has_zero()) return std::nullopt;
  std::vector<std::string_view> names;
  for (const Operation& each : operations()) {
    if (each.is_defined_for_e8m0) names.push_back(each.name);
  }
  return Error{ErrorKind::usage,
               fmt::format("OP is '{}' and --format is {}, which has no zero and no sign; accepted "
                           "are {}",
                           operation.name, format.name, join_words(names))};
}

Result<Evaluation> evaluate_operation(const Operation& operation, const ParsedOptions& options,
                                      const softfloat::Mode& mode) {
  if (const auto error = check_applicable(operation, options)) return *error;
  const std::optional<std::string> format_text = options.value("--format");
  if (!format_text) {
    return Error{ErrorKind::usage,
                 fmt::format("{} has no --format; --format NAME is accepted, such as --format fp16 "
                             "(see kvsim formats)",
                             operation.name)};
  }
  const Result<const NamedFormat*> format = format_named("--format", *format_text);
  if (!format) return format.error();
  if (const auto error = check_e8m0(operation, **format)) return *error;

  Evaluation evaluation;
  evaluation.operation = operation.name;
  evaluation.format = *format;
  evaluation.input = Json::object();
  evaluation.input["operation"] = operation.name;
  evaluation.input["format"] = (*format)->name;
  if (operation.name == "convert") {
    const std::optional<std::string> to_text = options.value("--to");
    if (!to_text) {
      return Error{ErrorKind::usage,
                   "convert has no --to; --to NAME is accepted, such as --to e4m3 (see kvsim "
                   "formats)"};
    }
    const Result<const NamedFormat*> to = format_named("--to", *to_text);
    if (!to) return to.error();
    evaluation.format = *to;
    evaluation.input["to"] = (*to)->name;
  }
  if (operation.rounds) add_mode(evaluation.input, mode);

  const std::vector<std::string>& texts = options.positionals();
  const std::size_t given = texts.size() - 1;
  if (given != static_cast<std::size_t>(operation.operand_count)) {
    return operand_count_error(operation, given);
  }
  for (std::size_t i = 0; i < given; ++i) {
    Result<Operand> operand =
        read_operand(std::string(1, static_cast<char>('a' + i)), texts[i + 1], **format);
    if (!operand) return operand.error();
    evaluation.operands.push_back(std::move(*operand));
  }
  operation.evaluate(evaluation, mode);
  return evaluation;
}

Result<Evaluation> evaluate_sum_operation(std::string_view operation, const ParsedOptions& options,
                                          const softfloat::Mode& mode) {
  if (options.has("--format")) {
    return Error{ErrorKind::usage,
                 fmt::format("--format is given for {}; --input NAME and --accumulate NAME are "
                             "accepted",
                             operation)};
  }
  if (options.has("--to")) return not_for("--to", operation, "convert");
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage,
                 fmt::format("{} is given the operand {}; {} is accepted", operation,
                             in_quotes(options.positionals()[1]),
                             operation == "dot" ? "--a=LIST --b=LIST" : "--a=LIST")};
  }
  return evaluate_sum(operation, options, mode);
}

// What --expect finds wrong; nothing when it agrees.
Result<std::string> check_expected(const Evaluation& evaluation, std::string_view expected) {
  if (evaluation.ordering) {
    constexpr std::array<std::string_view, 4> names{"less", "equal", "greater", "unordered"};
    if (std::find(names.begin(), names.end(), expected) == names.end()) {
      return unknown_word("--expect", expected, names);
    }
    const std::string_view found = ordering_name(*evaluation.ordering);
    if (found == expected) return std::string();
    return fmt::format("the result is {}; --expect is {}", found, expected);
  }
  const softfloat::Format& format = evaluation.format->format;
  const Result<softfloat::Rounded> wanted = softfloat::parse_number(format, expected);
  if (!wanted) {
    return Error{ErrorKind::usage, fmt::format("--expect: {}", wanted.error().message)};
  }
  if (wanted->flags.inexact || wanted->flags.overflow || wanted->flags.invalid) {
    return Error{
        ErrorKind::usage,
        fmt::format("--expect is {}, which is no number of {}; a code of {}, such as {}, is "
                    "accepted",
                    in_quotes(expected), evaluation.format->name, evaluation.format->name,
                    softfloat::to_bits_text(format, wanted->bits))};
  }
  const softfloat::Bits found = evaluation.result.bits;
  if (found == wanted->bits) return std::string();
  return fmt::format("the result is {} ({}); --expect is {} ({})",
                     softfloat::to_bits_text(format, found), softfloat::to_decimal(format, found),
                     softfloat::to_bits_text(format, wanted->bits),
                     softfloat::to_decimal(format, wanted->bits));
}

Result<Answer> run_eval(const ParsedOptions& options) {
  if (options.positionals().empty()) {
    return Error{ErrorKind::usage,
                 fmt::format("OP is missing; accepted are {}", join_words(operation_names()))};
  }
  const std::string& name = options.positionals().front();
  const bool is_sum = name == "dot" || name == "sum";
  const Operation* operation = nullptr;
  if (!is_sum) {
    const Result<const Operation*> found = find_operation(name);
    if (!found) return found.error();
    operation = *found;
  }
  const Result<softfloat::Mode> mode = mode_from(options);
  if (!mode) return mode.error();
  const Result<Evaluation> evaluation = is_sum ? evaluate_sum_operation(name, options, *mode)
                                               : evaluate_operation(*operation, options, *mode);
  if (!evaluation) return evaluation.error();
  Answer answer;
  answer.report = evaluation_report(*evaluation);
  if (const std::optional<std::string> expected = options.value("--expect")) {
    Result<std::string> complaint = check_expected(*evaluation, *expected);
    if (!complaint) return complaint.error();
    answer.report.input["expect"] = printable(*expected);
    answer.complaint = std::move(*complaint);
    if (!answer.complaint.empty()) answer.exit_code = ExitCode::check_failed;
  }
  return answer;
}

}  // namespace

const Command eval_command{
    .name = "eval",
    .summary = "one operation in any format: bits, flags, exact value, error in ulp",
    .synopsis = "OP [NUMBER...] [OPTIONS]",
    .description =
        "Evaluates one operation exactly as IEEE 754 hardware of that format does, and says how "
        "far the\n"
        "result is from the exact value. OP is one of:\n"
        "  A B      add, sub, mul, div, compare, compare_signaling, minimum, maximum,\n"
        "           minimum_number, maximum_number\n"
        "  A        sqrt, convert, next_up, next_down, round_to_integral\n"
        "  A B C    fma (A × B + C)\n"
        "  lists    dot (--a, --b), sum (--a)\n"
        "A number is bits (0x3c00), a hex-float (0x1.8p-3), a decimal (-1.5e-3), inf or nan; what "
        "its\n"
        "format cannot hold is rounded to it first, ties to even. An error of 1 ulp is the "
        "distance\n"
        "between neighbouring numbers at the result.",
    .options = eval_options,
    .examples =
        "  kvsim eval fma --format fp16 0x3c00 1.5 -0.25\n"
        "  kvsim eval dot --input fp32 --accumulate fp32 --product fused --a=1,2,3 --b=4,5,6",
    .run = run_eval,
};

}  // namespace kvsim
