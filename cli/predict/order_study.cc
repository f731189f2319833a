// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/order_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cli/format_option.h"
#include "cli/predict/attention_inputs.h"
#include "cli/predict/order_study_report.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/replay/settings.h"
#include "sim/order.h"
#include "sim/predict/orders.h"
#include "sim/sum.h"

namespace kvsim {
namespace {

constexpr std::array<std::string_view, 7> study_options{
    "--order", "--order-qk", "--order-sum", "--order-pv", "--accumulate", "--product", "--round"};
// What the study does not read.
constexpr std::array<std::string_view, 21> other_options{
    "--device", "--on",     "--off",          "--config",  "--model",     "--rows",   "--cached",
    "--new",    "--chunks", "--verify-width", "--ranks",   "--margins",   "--layers", "--prefix",
    "--trials", "--quick",  "--exp-table",    "--exp-ulp", "--positions", "--rope",   "--setting"};

Result<Order> order_of(std::string_view option, std::string_view text) {
  Result<Order> order = parse_order(text);
  if (!order) {
    return Error{order.error().kind, fmt::format("{}: {}", option, order.error().message)};
  }
  return order;
}

Result<std::vector<OrderedVariant>> variants_from(const ParsedOptions& options) {
  std::vector<OrderedVariant> variants;
  for (const std::string& text : options.values("--order")) {
    const Result<Order> order = order_of("--order", text);
    if (!order) return order.error();
    OrderedVariant variant{to_string(*order), {*order, *order, *order}};
    for (const OrderedVariant& other : variants) {
      if (other.name == variant.name) {
        return Error{ErrorKind::usage,
                     fmt::format("--order {} is given twice; different orders are accepted",
                                 printable(variant.name))};
      }
    }
    variants.push_back(std::move(variant));
  }
  if (variants.empty()) variants = default_variants();
  constexpr std::array<std::pair<std::string_view, Order AttentionOrders::*>, 3> parts{{
      {"--order-qk", &AttentionOrders::scores},
      {"--order-sum", &AttentionOrders::row_sum},
      {"--order-pv", &AttentionOrders::values},
  }};
  for (const auto& [option, part] : parts) {
    const std::optional<std::string> text = options.value(option);
    if (!text) continue;
    const Result<Order> order = order_of(option, *text);
    if (!order) return order.error();
    for (OrderedVariant& variant : variants) variant.orders.*part = *order;
  }
  return variants;
}

std::optional<Error> read_rounded_parts(const ParsedOptions& options,
                                        AttentionArithmetic& arithmetic) {
  const std::optional<std::string> text = options.value("--round");
  if (!text) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, bool AttentionArithmetic::*>, 3> parts{{
      {"scores", &AttentionArithmetic::round_scores},
      {"p", &AttentionArithmetic::round_p},
      {"out", &AttentionArithmetic::round_out},
  }};
  constexpr std::array<std::string_view, 4> names{"scores", "p", "out", "none"};
  for (const auto& [name, member] : parts) arithmetic.*member = false;
  if (*text == "none") return std::nullopt;
  std::string_view rest = *text;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const auto& each) { return each.first == word; });
    if (word == "none") {
      return Error{ErrorKind::usage,
                   fmt::format("--round is {}; none is accepted alone", in_quotes(*text))};
    }
    if (part == parts.end()) return unknown_word("--round", word, names);
    if (arithmetic.*(part->second)) {
      return Error{ErrorKind::usage,
                   fmt::format("--round is {}, which has {} twice; each name once is accepted",
                               in_quotes(*text), word)};
    }
    arithmetic.*(part->second) = true;
    if (comma == rest.size()) return std::nullopt;
    rest.remove_prefix(comma + 1);
  }
}

Result<AttentionArithmetic> arithmetic_from(const ParsedOptions& options) {
  AttentionArithmetic arithmetic;
  const auto accumulator =
      format_named("--accumulate", options.value("--accumulate").value_or("binary32"));
  if (!accumulator) return accumulator.error();
  arithmetic.accumulator = (*accumulator)->format;
  if (const auto text = options.value("--product")) {
    const Result<Product> product = parse_product(*text);
    if (!product) {
      return Error{product.error().kind, fmt::format("--product: {}", product.error().message)};
    }
    arithmetic.product = *product;
  }
  if (const auto error = read_rounded_parts(options, arithmetic)) return *error;
  return arithmetic;
}

std::optional<Error> check_options(const ParsedOptions& options) {
  const std::optional<std::string_view> study = order_study_option(options);
  if (!study) return std::nullopt;
  for (const std::string_view other : other_options) {
    if (!options.has(other)) continue;
    return Error{ErrorKind::usage,
                 fmt::format("{} is given with {}, which asks for the study of summation orders "
                             "alone; one of them is accepted",
                             other, *study)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> order_study_option(const ParsedOptions& options) {
  for (const std::string_view option : study_options) {
    if (options.has(option)) return option;
  }
  return std::nullopt;
}

Result<Answer> run_order_study(const ParsedOptions& options) {
  if (const auto error = check_options(options)) return *error;
  // Cheap mistakes are told before values are made or a file is read.
  const Result<AttentionArithmetic> arithmetic = arithmetic_from(options);
  if (!arithmetic) return arithmetic.error();
  Result<std::vector<OrderedVariant>> variants = variants_from(options);
  if (!variants) return variants.error();
  const Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  const Result<GivenAttention> inputs = given_attention(options);
  if (!inputs) return inputs.error();

  OrderStudyOptions prediction;
  prediction.shape = inputs->shape;
  prediction.arithmetic = *arithmetic;
  prediction.arithmetic.storage = inputs->storage->format;
  prediction.variants = std::move(*variants);
  prediction.threads = engine->threads;
  prediction.simd = engine->level;
  Result<OrderStudy> report = [&] {
    Progress progress("predict", options);
    prediction.progress = [&](double share) { progress.show(share); };
    return study_orders(prediction, inputs->values);
  }();
  if (!report) return report.error();
  Answer answer;
  answer.report = order_study_report(*report, *inputs);
  return answer;
}

}  // namespace kvsim
