// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/margins_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "model/mapped_file.h"
#include "model/quote.h"

namespace kvsim {
namespace {

constexpr std::size_t largest_file = std::size_t{1} << 28;
constexpr std::string_view accepted =
    "accepted: an object with \"prompts\": [[[largest logit, margin], …], …], a list of margins, "
    "or numbers separated by blanks";

/// The number that all of `text` is, read without regard to the locale.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes the margins out of the events of a JSON parser.
class MarginEvents {
 public:
  using Json = nlohmann::json;

  explicit MarginEvents(MarginList& list) : list_(list) {}

  [[nodiscard]] const std::string& problem() const { return problem_; }

  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(std::int64_t value) { return add(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return add(static_cast<double>(value)); }
  bool number_float(double /*value*/, const std::string& text) {
    const std::optional<double> value = number(text);
    return value ? add(*value) : fail(fmt::format("number {} is out of range", quote(text)));
  }
  bool string(std::string& value) {
    if (depth_ != 1) return true;
    if (key_ == "model") {
      list_.model = std::move(value);
    } else if (key_ == "text") {
      list_.text = std::move(value);
    }
    return true;
  }
  bool binary(Json::binary_t& /*value*/) { return true; }
  bool start_object(std::size_t /*size*/) {
    root_is_object_ = depth_ == 0 || root_is_object_;
    ++depth_;
    return true;
  }
  bool key(std::string& value) {
    if (depth_ == 1) key_ = std::move(value);
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t /*size*/) {
    ++depth_;
    column_ = 0;
    return true;
  }
  bool end_array() {
    if (is_token() && column_ != 2) {
      return fail(
          fmt::format("a token has {} numbers; accepted: [largest logit, margin]", column_));
    }
    return close();
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const Json::exception& /*error*/) {
    return fail(fmt::format("no JSON at byte {}", position));
  }

 private:
  // An object's "prompts", its prompts, their tokens.
  [[nodiscard]] bool is_token() const {
    return root_is_object_ && key_ == "prompts" && depth_ == 4;
  }
  bool close() {
    --depth_;
    return true;
  }
  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  bool add(double value) {
    if (!root_is_object_ && depth_ == 1) {
      list_.margins.push_back(value);
    } else if (is_token()) {
      if (column_ < 2) (column_ == 0 ? list_.top_logits : list_.margins).push_back(value);
      ++column_;
    }
    return true;
  }

  MarginList& list_;
  std::string problem_;
  std::string key_;
  bool root_is_object_ = false;
  int depth_ = 0;
  int column_ = 0;
};

std::optional<std::string> read_plain(std::string_view text, MarginList& list) {
  constexpr std::string_view separators = " \t\r\n,";
  std::size_t at = text.find_first_not_of(separators);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::optional<double> value = number(word);
    if (!value) return fmt::format("{} is no number; {}", quote(word), accepted);
    list.margins.push_back(*value);
    at = text.find_first_not_of(separators, end);
  }
  return std::nullopt;
}

std::optional<std::string> read_any(std::string_view text, MarginList& list) {
  // The JSON parser takes a zero byte for the end and would never see what follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return fmt::format("byte {} is zero; {}", zero + 1, accepted);
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) {
    return read_plain(text, list);
  }
  MarginEvents events(list);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return std::nullopt;
  return events.problem();
}

}  // namespace

Result<MarginList> parse_margins(std::string_view text, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  MarginList list;
  if (const auto problem = read_any(text, list)) return fail(*problem);
  if (list.margins.empty()) return fail(fmt::format("no margins; {}", accepted));
  for (const double margin : list.margins) {
    if (!(margin >= 0) || !std::isfinite(margin)) {
      return fail(
          fmt::format("margin {} is given; accepted: finite numbers of at least 0", margin));
    }
  }
  return list;
}

Result<MarginList> load_margins(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > largest_file) {
    return Error{ErrorKind::file, fmt::format("{}: {} bytes; at most {} are accepted",
                                              quote_path(path), bytes.size(), largest_file)};
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_margins(text, quote_path(path));
}

}  // namespace kvsim
