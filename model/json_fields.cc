// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

using nlohmann::json;

Error file_error(std::string message) { return Error{ErrorKind::file, std::move(message)}; }

/// Takes the parser's events and keeps a flat list. No tree is built, so neither memory nor stack
/// depends on how the text is nested.
class FieldSax : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(std::monostate{}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse(fmt::format("{} is {}; accepted: at most 9223372036854775807", where(), value));
    }
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    // The parser's own value depends on the locale.
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size()) {
      return refuse(fmt::format("{} is {}; accepted: numbers within the range of binary64", where(),
                                quote(text)));
    }
    return add(value);
  }
  bool string(string_t& value) override { return add(std::string(value)); }
  bool binary(binary_t& /*value*/) override { return refuse(where() + " is binary data"); }
  bool start_object(std::size_t /*size*/) override { return open(false); }
  bool start_array(std::size_t /*size*/) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (name.empty() || name.find_first_of(".[]") != std::string::npos) {
      return refuse(fmt::format(
          "key {}; accepted: keys without a dot or bracket, at least one byte", quote(name)));
    }
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& /*failure*/) override {
    return refuse(fmt::format("byte {} is not JSON; accepted: one JSON object in UTF-8", position));
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::vector<JsonField>& fields() { return fields_; }

 private:
  struct Level {
    std::string path;
    std::size_t field = 0;  ///< of the container; unused at the top
    bool is_array = false;
    std::int64_t size = 0;
  };

  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  [[nodiscard]] std::string path() const {
    if (levels_.empty()) return {};
    const Level& level = levels_.back();
    if (level.is_array) return fmt::format("{}[{}]", level.path, level.size);
    return level.path.empty() ? key_ : fmt::format("{}.{}", level.path, key_);
  }
  [[nodiscard]] std::string where() const {
    return levels_.empty() ? "the file" : fmt::format("field {}", quote(path()));
  }
  bool add(JsonValue value) {
    if (levels_.empty()) {
      return refuse(fmt::format("the file is {}; accepted: one JSON object", describe(value)));
    }
    std::string name = path();
    if (name.size() > JsonLimits::path_bytes || fields_.size() >= JsonLimits::fields) {
      return refuse(
          fmt::format("more than {} fields, or a key path longer than {} bytes; accepted: "
                      "at most that",
                      JsonLimits::fields, JsonLimits::path_bytes));
    }
    fields_.push_back({std::move(name), std::move(value)});
    ++levels_.back().size;
    return true;
  }
  bool open(bool is_array) {
    Level level{.path = {}, .field = fields_.size(), .is_array = is_array, .size = 0};
    if (levels_.empty()) {
      if (is_array) return add(JsonContainer{true, 0});
      levels_.push_back(std::move(level));
      return true;
    }
    if (levels_.size() >= JsonLimits::depth) {
      return refuse(fmt::format("{} is nested deeper than {}; accepted: at most that", where(),
                                JsonLimits::depth));
    }
    level.path = path();
    if (!add(JsonContainer{is_array, 0})) return false;
    levels_.push_back(std::move(level));
    return true;
  }
  bool close() {
    if (levels_.size() > 1) {
      std::get<JsonContainer>(fields_[levels_.back().field].value).size = levels_.back().size;
    }
    levels_.pop_back();
    return true;
  }

  std::vector<Level> levels_;
  std::string key_;
  std::vector<JsonField> fields_;
  std::string problem_;
};

}  // namespace

Result<std::vector<JsonField>> read_json_fields(std::string_view text) {
  if (text.size() > JsonLimits::bytes) {
    return file_error(
        fmt::format("has {} bytes; accepted: at most {}", text.size(), JsonLimits::bytes));
  }
  // The JSON parser takes a zero byte for the end and would never see what follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return file_error(fmt::format("byte {} is zero; accepted: one JSON object in UTF-8", zero + 1));
  }
  FieldSax sax;
  if (!json::sax_parse(text.begin(), text.end(), &sax)) return file_error(sax.problem());
  std::vector<std::string_view> paths;
  paths.reserve(sax.fields().size());
  for (const JsonField& field : sax.fields()) paths.emplace_back(field.path);
  std::ranges::sort(paths);
  if (const auto twice = std::ranges::adjacent_find(paths); twice != paths.end()) {
    return file_error(fmt::format("field {} stands twice; accepted: once", quote(*twice)));
  }
  return std::move(sax.fields());
}

std::string describe(const JsonValue& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return fmt::format("the number {}", *whole);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("the number {}", *number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return fmt::format("the text {}", quote(*text));
  }
  if (const auto* container = std::get_if<JsonContainer>(&value)) {
    return container->is_array ? "an array" : "an object";
  }
  return "null";
}

}  // namespace kvsim
