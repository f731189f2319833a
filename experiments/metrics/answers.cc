// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/metrics/answers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace kvsim::metrics {
namespace {

constexpr std::string_view marker = "#### ";
constexpr std::array<std::string_view, 4> stops = {"Question:", "</s>", "<|im_end|>",
                                                   "<|endoftext|>"};
constexpr std::string_view digits = "0123456789";
constexpr std::string_view marked_characters = "0123456789.,";
constexpr std::string_view number_characters = "0123456789.,$";

/// The longest run of these characters at `begin`.
std::string_view run_at(std::string_view text, std::size_t begin, std::string_view characters) {
  const std::size_t end = std::min(text.find_first_not_of(characters, begin), text.size());
  return text.substr(begin, end - begin);
}

std::optional<std::string_view> marked_text(std::string_view text) {
  for (std::size_t at = text.find(marker); at != std::string_view::npos;
       at = text.find(marker, at + 1)) {
    const std::size_t begin = at + marker.size();
    const std::size_t sign = begin < text.size() && text[begin] == '-' ? 1 : 0;
    const std::size_t length = run_at(text, begin + sign, marked_characters).size();
    if (length > 0) return text.substr(begin, sign + length);
  }
  return std::nullopt;
}

/// The match of the pattern at `begin`; empty where there is none.
std::string_view number_at(std::string_view text, std::size_t begin) {
  const std::size_t sign = text[begin] == '-' ? 1 : 0;
  const std::string_view run = run_at(text, begin + sign, number_characters);
  const bool is_digit = run.size() == 1 && digits.find(run.front()) != std::string_view::npos;
  return run.size() >= 2 || is_digit ? text.substr(begin, sign + run.size()) : std::string_view();
}

std::optional<std::string_view> last_number_text(std::string_view text) {
  std::optional<std::string_view> last;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view match = number_at(text, at);
    if (match.find_first_of(digits) != std::string_view::npos) last = match;
    at += std::max<std::size_t>(1, match.size());
  }
  return last;
}

}  // namespace

std::string_view before_stop(std::string_view text) {
  std::size_t end = text.size();
  for (const std::string_view stop : stops) end = std::min(end, text.find(stop));
  return text.substr(0, end);
}

std::optional<std::string> canonical_number(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  std::copy_if(text.begin(), text.end(), std::back_inserter(plain),
               [](char c) { return c != '$' && c != ','; });
  const bool is_negative = plain.starts_with('-');
  if (is_negative) plain.erase(0, 1);
  while (plain.ends_with('.')) plain.pop_back();
  const std::size_t point = plain.find('.');
  std::string whole = plain.substr(0, point);
  std::string fraction = point == std::string::npos ? "" : plain.substr(point + 1);
  const auto only_digits = [](const std::string& part) {
    return part.find_first_not_of(digits) == std::string::npos;
  };
  if (plain.empty() || !only_digits(whole) || !only_digits(fraction)) return std::nullopt;
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  while (fraction.ends_with('0')) fraction.pop_back();
  if (whole.empty() && fraction.empty()) return "0";
  std::string result = is_negative ? "-" : "";
  result += whole.empty() ? "0" : whole;
  if (!fraction.empty()) result += "." + fraction;
  return result;
}

std::optional<std::string> extract_answer(std::string_view text, AnswerRule rule) {
  const std::optional<std::string_view> found =
      rule == AnswerRule::marked ? marked_text(text) : last_number_text(text);
  if (!found) return std::nullopt;
  return canonical_number(*found);
}

std::optional<bool> is_correct(std::string_view text, std::string_view expected, AnswerRule rule) {
  const std::optional<std::string> right = extract_answer(expected, AnswerRule::marked);
  if (!right) return std::nullopt;
  return extract_answer(before_stop(text), rule) == right;
}

}  // namespace kvsim::metrics
