// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <thread>
#include <utility>

#include "cli/format_option.h"
#include "cli/printable.h"
#include "sim/engine/simd_level.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"
#include "softfloat/suggest.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::int64_t max_threads = 1024;

constexpr std::array<std::pair<std::string_view, Product>, 3> products{{
    {"rounded", Product::rounded},
    {"fused", Product::fused},
    {"exact", Product::exact},
}};

}  // namespace

Result<EngineOptions> engine_options(const ParsedOptions& options) {
  const std::int64_t cpus = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const Result<std::int64_t> threads =
      integer_option(options, "--threads", std::min(cpus, max_threads), 1, max_threads);
  if (!threads) return threads.error();
  const char* const text = std::getenv("KVSIM_SIMD");
  const Result<SimdLevel> level = select_simd_level(text == nullptr ? "" : text);
  if (!level) return Error{level.error().kind, "KVSIM_SIMD: " + level.error().message};
  return EngineOptions{static_cast<int>(*threads), *level};
}

Result<softfloat::Format> format_option(const ParsedOptions& options, std::string_view name,
                                        const softfloat::Format& fallback) {
  const std::optional<std::string> text = options.value(name);
  if (!text) return fallback;
  const Result<const softfloat::NamedFormat*> row = format_named(name, *text);
  if (!row) return row.error();
  return (*row)->format;
}

Result<softfloat::Format> result_format(const ParsedOptions& options,
                                        const softfloat::Format& fallback) {
  const auto is_stored = [](const softfloat::Format& format) {
    return format.width() == 8 || format.width() == 16 || format.width() == 32;
  };
  Result<softfloat::Format> format =
      format_option(options, "--round-to", is_stored(fallback) ? fallback : softfloat::binary32);
  if (!format || is_stored(*format)) return format;
  return Error{ErrorKind::usage,
               fmt::format("--round-to is {}; a format of 8, 16 or 32 bits is accepted",
                           softfloat::format_name(*format))};
}

Result<std::optional<float>> float_option(const ParsedOptions& options, std::string_view name,
                                          float lowest, float highest) {
  const std::optional<std::string> text = options.value(name);
  if (!text) return std::optional<float>();
  const Result<softfloat::Rounded> number = softfloat::parse_number(softfloat::binary32, *text);
  float value = 0;
  if (number) value = softfloat::to_float(softfloat::binary32, number->bits);
  // Also false for NaN.
  if (!number || !(value >= lowest && value <= highest)) {
    return Error{ErrorKind::usage, fmt::format("{} is {}; a number from {} to {} is accepted", name,
                                               in_quotes(*text), lowest, highest)};
  }
  return std::optional(value);
}

Result<std::vector<Order>> order_options(const ParsedOptions& options) {
  std::vector<Order> orders;
  for (const std::string& text : options.values("--order")) {
    Result<Order> order = parse_order(text);
    if (!order) return Error{order.error().kind, "--order: " + order.error().message};
    if (std::ranges::find(orders, *order) != orders.end()) {
      return Error{ErrorKind::usage,
                   fmt::format("--order {} is given twice; different orders are accepted",
                               printable(to_string(*order)))};
    }
    orders.push_back(std::move(*order));
  }
  return orders;
}

Result<Product> product_option(const ParsedOptions& options) {
  const std::optional<std::string> text = options.value("--product");
  if (!text) return Product::rounded;
  std::array<std::string_view, products.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (products[i].first == *text) return products[i].second;
    names[i] = products[i].first;
  }
  return unknown_word("--product", *text, names);
}

std::string_view product_name(Product product) {
  for (const auto& [name, value] : products) {
    if (value == product) return name;
  }
  return ""sv;
}

Result<std::vector<std::string>> kernel_options(const ParsedOptions& options) {
  std::vector<std::string> names = options.values("--kernel");
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      return Error{ErrorKind::usage,
                   fmt::format("--kernel {} is given twice; different kernels are accepted",
                               printable(name))};
    }
  }
  return names;
}

std::optional<Error> check_kernel_or_order(const ParsedOptions& options,
                                           std::string_view operator_name, bool has_kernels,
                                           bool has_orders) {
  if (!has_kernels && !has_orders) {
    return Error{ErrorKind::usage,
                 fmt::format("replay {0} has neither --kernel nor --order; --kernel NAME (kvsim "
                             "kernels --operator {0}) or --order ORDER is accepted",
                             operator_name)};
  }
  for (const std::string_view option : {"--accumulate", "--product", "--round-to"}) {
    if (has_orders || !options.has(option)) continue;
    return Error{ErrorKind::usage,
                 fmt::format("{} is given without --order; it is accepted beside --order", option)};
  }
  return std::nullopt;
}

Error unknown_kernel(std::string_view operator_name, std::string_view text,
                     const std::vector<std::string_view>& names) {
  const std::string_view near = softfloat::nearest(text, names);
  std::string message = fmt::format(
      "--kernel: no {0} kernel is called {1}; accepted are the names of kvsim kernels --operator "
      "{0}",
      operator_name, in_quotes(text));
  if (!near.empty()) message += fmt::format("; did you mean {}?", near);
  return {ErrorKind::usage, std::move(message)};
}

}  // namespace kvsim
