// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/eval.h"
#include "cli/format_option.h"
#include "cli/mode_options.h"
#include "cli/printable.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "sim/sum_tree.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::NamedFormat;

constexpr std::size_t longest_list = 65536;

Error missing(std::string_view operation, std::string_view option, std::string_view accepted) {
  return {ErrorKind::usage,
          fmt::format("{} has no {}; {} is accepted", operation, option, accepted)};
}

Result<std::vector<Operand>> read_list(std::string_view option, std::string_view text,
                                       const NamedFormat& format) {
  const auto commas = static_cast<std::size_t>(std::count(text.begin(), text.end(), ','));
  if (commas >= longest_list) {
    return Error{ErrorKind::usage, fmt::format("{} has {} numbers; 1 to {} are accepted", option,
                                               commas + 1, longest_list)};
  }
  std::vector<Operand> operands;
  const std::string_view letter = option.substr(2);
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    Result<Operand> operand =
        read_operand(fmt::format("{}[{}]", letter, operands.size()), text.substr(0, comma), format);
    if (!operand) return operand.error();
    operands.push_back(std::move(*operand));
    if (comma == text.size()) return operands;
    text.remove_prefix(comma + 1);
  }
}

struct SumOptions {
  const NamedFormat* input = nullptr;
  const NamedFormat* accumulate = nullptr;
  Order order;
  Product product = Product::rounded;
};

Result<SumOptions> read_sum_options(std::string_view operation, const ParsedOptions& options) {
  SumOptions sum;
  const auto input_text = options.value("--input");
  if (!input_text) {
    return missing(operation, "--input", "--input NAME, such as --input fp16 (see kvsim formats),");
  }
  const Result<const NamedFormat*> input = format_named("--input", *input_text);
  if (!input) return input.error();
  const Result<const NamedFormat*> accumulate =
      format_named("--accumulate", options.value("--accumulate").value_or(*input_text));
  if (!accumulate) return accumulate.error();
  sum.input = *input;
  sum.accumulate = *accumulate;
  for (const auto& [option, format] :
       {std::pair{"--input", sum.input}, std::pair{"--accumulate", sum.accumulate}}) {
    if (!format->format.has_zero()) {
      return Error{ErrorKind::usage,
                   fmt::format("{} is {}, which has no zero; every other format is accepted",
                               option, format->name)};
    }
  }
  Result<Order> order = parse_order(options.value("--order").value_or("sequential"));
  if (!order) {
    return Error{order.error().kind, fmt::format("--order: {}", order.error().message)};
  }
  sum.order = std::move(*order);
  if (const auto product_text = options.value("--product")) {
    if (operation == "sum") {
      return Error{ErrorKind::usage, "--product is given for sum; it is accepted for dot"};
    }
    const Result<Product> product = parse_product(*product_text);
    if (!product) {
      return Error{product.error().kind, fmt::format("--product: {}", product.error().message)};
    }
    sum.product = *product;
  }
  return sum;
}

}  // namespace

Result<Evaluation> evaluate_sum(std::string_view operation, const ParsedOptions& options,
                                const softfloat::Mode& mode) {
  const bool is_dot = operation == "dot";
  if (mode.rounding == softfloat::Rounding::stochastic) {
    return Error{
        ErrorKind::usage,
        fmt::format("--rounding is 'stochastic' for {}, which rounds many times and --random "
                    "has bits for one; every other rounding is accepted",
                    operation)};
  }
  const Result<SumOptions> sum = read_sum_options(operation, options);
  if (!sum) return sum.error();
  const auto a_text = options.value("--a");
  if (!a_text) return missing(operation, "--a", "--a=1,2,3");
  Result<std::vector<Operand>> a = read_list("--a", *a_text, *sum->input);
  if (!a) return a.error();
  const std::size_t count = a->size();
  const Result<bool> fits = check_length(sum->order, static_cast<std::int64_t>(count));
  if (!fits) return Error{fits.error().kind, fmt::format("--order: {}", fits.error().message)};

  const Result<bool> formats =
      check_formats(sum->order, sum->input->format, sum->accumulate->format);
  if (!formats)
    return Error{formats.error().kind, fmt::format("--order: {}", formats.error().message)};
  Evaluation evaluation;
  evaluation.operation = operation;
  evaluation.format = sum->accumulate;
  evaluation.operands = std::move(*a);
  std::vector<Bits> a_bits;
  a_bits.reserve(evaluation.operands.size());
  for (const Operand& operand : evaluation.operands) a_bits.push_back(operand.value.bits);
  std::vector<Bits> b_bits;
  const auto b_text = options.value("--b");
  if (is_dot) {
    if (!b_text) return missing(operation, "--b", "--b=4,5,6");
    Result<std::vector<Operand>> b = read_list("--b", *b_text, *sum->input);
    if (!b) return b.error();
    if (b->size() != count) {
      return Error{ErrorKind::usage,
                   fmt::format("--b has {} and --a has {} numbers; equally many are accepted",
                               b->size(), count)};
    }
    for (Operand& operand : *b) {
      b_bits.push_back(operand.value.bits);
      evaluation.operands.push_back(std::move(operand));
    }
  } else {
    if (b_text) return Error{ErrorKind::usage, "--b is given for sum; it is accepted for dot"};
    const Bits one = softfloat::parse_number(sum->input->format, "1").value().bits;
    b_bits.assign(count, one);
  }

  Json& input = evaluation.input;
  input = Json::object();
  input["operation"] = operation;
  input["input"] = sum->input->name;
  input["accumulate"] = sum->accumulate->name;
  input["order"] = to_string(sum->order);
  if (is_dot) input["product"] = to_string(sum->product);
  add_mode(input, mode);

  if (options.has("--tree")) {
    const Result<SumTree> tree = build_sum_tree(sum->order, static_cast<std::int64_t>(count));
    if (!tree) return Error{tree.error().kind, fmt::format("--tree: {}", tree.error().message)};
    evaluation.tree = to_string(*tree);
    evaluation.tree_digest = digest(*tree);
  }
  evaluation.result = sum_products(sum->order, sum->product, sum->input->format,
                                   sum->accumulate->format, a_bits, b_bits, mode);
  for (std::size_t i = 0; i < count; ++i) {
    const ExactValue term = exact_multiply(exact_value(sum->input->format, a_bits[i]),
                                           exact_value(sum->input->format, b_bits[i]));
    evaluation.exact = i == 0 ? term : exact_add(evaluation.exact, term);
  }
  return evaluation;
}

}  // namespace kvsim
