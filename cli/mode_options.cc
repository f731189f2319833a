// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/mode_options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cli/printable.h"

namespace kvsim {
namespace {

using softfloat::Mode;
using softfloat::Overflow;
using softfloat::Rounding;
using softfloat::Subnormals;
using softfloat::Tininess;

template <class Value>
struct Name {
  std::string_view text;
  Value value;
};

// For each value the canonical name comes first.
constexpr std::array rounding_names{
    Name{"ties_to_even", Rounding::ties_to_even},
    Name{"ties_to_away", Rounding::ties_to_away},
    Name{"toward_zero", Rounding::toward_zero},
    Name{"toward_positive", Rounding::toward_positive},
    Name{"toward_negative", Rounding::toward_negative},
    Name{"to_odd", Rounding::to_odd},
    Name{"stochastic", Rounding::stochastic},
    Name{"RNE", Rounding::ties_to_even},
    Name{"RNA", Rounding::ties_to_away},
    Name{"RTZ", Rounding::toward_zero},
    Name{"RTP", Rounding::toward_positive},
    Name{"RUP", Rounding::toward_positive},
    Name{"RTN", Rounding::toward_negative},
    Name{"RDN", Rounding::toward_negative},
    Name{"odd", Rounding::to_odd},
    Name{"roundTiesToEven", Rounding::ties_to_even},
    Name{"roundTiesToAway", Rounding::ties_to_away},
    Name{"roundTowardZero", Rounding::toward_zero},
    Name{"roundTowardPositive", Rounding::toward_positive},
    Name{"roundTowardNegative", Rounding::toward_negative},
    Name{"roundToOdd", Rounding::to_odd},
};
constexpr std::array overflow_names{
    Name{"automatic", Overflow::automatic},
    Name{"infinity", Overflow::infinity},
    Name{"saturate", Overflow::saturate},
    Name{"nan", Overflow::nan},
};
constexpr std::array subnormal_names{
    Name{"keep", Subnormals::keep},
    Name{"flush_results", Subnormals::flush_results},
    Name{"flush_inputs", Subnormals::flush_inputs},
    Name{"flush_both", Subnormals::flush_both},
};
constexpr std::array tininess_names{
    Name{"after_rounding", Tininess::after_rounding},
    Name{"before_rounding", Tininess::before_rounding},
};

std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

template <class Value>
Result<Value> named_value(const ParsedOptions& options, std::string_view option,
                          std::span<const Name<Value>> names, Value fallback) {
  const std::optional<std::string> text = options.value(option);
  if (!text) return fallback;
  std::vector<std::string_view> accepted;
  for (const Name<Value>& name : names) {
    if (folded(name.text) == folded(*text)) return name.value;
    accepted.push_back(name.text);
  }
  return unknown_word(option, *text, accepted);
}

template <class Value>
std::string_view canonical_name(std::span<const Name<Value>> names, Value value) {
  for (const Name<Value>& name : names) {
    if (name.value == value) return name.text;
  }
  return "unknown";
}

Result<std::uint32_t> random_bits(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = is_hex ? text.substr(2) : text;
  std::uint32_t value = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value, is_hex ? 16 : 10);
  if (error != std::errc{} || end != last) {
    return Error{ErrorKind::usage,
                 fmt::format("--random is {}; 32 bits are accepted: 0 to 4294967295, or 0x0 to "
                             "0xffffffff",
                             in_quotes(text))};
  }
  return value;
}

std::vector<std::string_view> raised(const softfloat::Flags& flags) {
  std::vector<std::string_view> names;
  if (flags.invalid) names.emplace_back("invalid");
  if (flags.division_by_zero) names.emplace_back("division_by_zero");
  if (flags.overflow) names.emplace_back("overflow");
  if (flags.underflow) names.emplace_back("underflow");
  if (flags.inexact) names.emplace_back("inexact");
  return names;
}

}  // namespace

std::span<const std::string_view> mode_option_names() {
  static constexpr std::array<std::string_view, 5> names{"--rounding", "--random", "--overflow",
                                                         "--subnormals", "--tininess"};
  return names;
}

Result<Mode> mode_from(const ParsedOptions& options) {
  Mode mode;
  const auto rounding = named_value<Rounding>(options, "--rounding", rounding_names, mode.rounding);
  if (!rounding) return rounding.error();
  const auto overflow = named_value<Overflow>(options, "--overflow", overflow_names, mode.overflow);
  if (!overflow) return overflow.error();
  const auto subnormals =
      named_value<Subnormals>(options, "--subnormals", subnormal_names, mode.subnormals);
  if (!subnormals) return subnormals.error();
  const auto tininess = named_value<Tininess>(options, "--tininess", tininess_names, mode.tininess);
  if (!tininess) return tininess.error();
  mode.rounding = *rounding;
  mode.overflow = *overflow;
  mode.subnormals = *subnormals;
  mode.tininess = *tininess;
  const std::optional<std::string> random = options.value("--random");
  const bool is_stochastic = mode.rounding == Rounding::stochastic;
  if (is_stochastic && !random) {
    return Error{ErrorKind::usage,
                 "--rounding is 'stochastic' and --random is missing; --random BITS, 0 to "
                 "4294967295, is accepted"};
  }
  if (random && !is_stochastic) {
    return Error{ErrorKind::usage, fmt::format("--random is {} and --rounding is '{}'; --random is "
                                               "accepted with --rounding stochastic",
                                               in_quotes(*random), rounding_name(mode.rounding))};
  }
  if (random) {
    const Result<std::uint32_t> bits = random_bits(*random);
    if (!bits) return bits.error();
    mode.random = *bits;
  }
  return mode;
}

std::string_view rounding_name(Rounding rounding) {
  return canonical_name<Rounding>(rounding_names, rounding);
}

void add_mode(Json& input, const Mode& mode) {
  input["rounding"] = rounding_name(mode.rounding);
  if (mode.rounding == Rounding::stochastic) input["random"] = mode.random;
  input["overflow"] = canonical_name<Overflow>(overflow_names, mode.overflow);
  input["subnormals"] = canonical_name<Subnormals>(subnormal_names, mode.subnormals);
  input["tininess"] = canonical_name<Tininess>(tininess_names, mode.tininess);
}

Json flags_json(const softfloat::Flags& flags) {
  Json names = Json::array();
  for (const std::string_view name : raised(flags)) names.push_back(name);
  return names;
}

std::string flags_text(const softfloat::Flags& flags) {
  std::string text;
  for (const std::string_view name : raised(flags)) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace kvsim
