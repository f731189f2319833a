// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/record_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "model/json_tree.h"
#include "model/quote.h"
#include "run/record_reader.h"

namespace kvsim {
namespace {

using nlohmann::json;

/// A tree whose decimal numbers are numbers, not texts.
class RecordTree : public JsonTreeBuilder {
 public:
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return refuse(fmt::format("number {} is out of range; accepted: binary64", quote(text)));
    }
    return add(value);
  }
  bool string(string_t& value) override {
    if (value.size() > RecordLimits::text_bytes) {
      return refuse(fmt::format("a text of {} bytes; accepted: at most {}", value.size(),
                                RecordLimits::text_bytes));
    }
    return add(value);
  }
};

std::string described(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case json::value_t::string:
      return quote(value.get_ref<const std::string&>());
    case json::value_t::number_float:
      return fmt::format("{}", value.get<double>());
    case json::value_t::number_integer:
      return fmt::format("{}", value.get<std::int64_t>());
    case json::value_t::number_unsigned:
      return fmt::format("{}", value.get<std::uint64_t>());
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return "null";
  }
}

}  // namespace

json read_record_object(std::string_view line, std::string& problem) {
  RecordTree tree;
  if (auto found = build_json_tree(line, tree)) {
    problem = std::move(*found);
    return {};
  }
  return std::move(tree.root());
}

void RecordField::refuse(std::string_view accepted) const {
  if (!problem_->empty()) return;
  *problem_ = fmt::format("{}{}{}; accepted: {}", path_, path_.empty() ? "" : ": ",
                          value_ == nullptr ? "missing" : described(*value_), accepted);
}

bool RecordField::is_object_of(std::initializer_list<std::string_view> keys) const {
  if (value_ == nullptr) return false;
  if (!value_->is_object()) {
    refuse(fmt::format("an object of {}", fmt::join(keys, ", ")));
    return false;
  }
  for (const auto& [key, value] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    if (problem_->empty()) {
      *problem_ = fmt::format("{}field {} is not known; accepted: {}",
                              path_.empty() ? "" : path_ + ": ", quote(key), fmt::join(keys, ", "));
    }
    return false;
  }
  for (const std::string_view key : keys) {
    if (value_->contains(key)) continue;
    if (problem_->empty()) {
      *problem_ = fmt::format("{}field \"{}\" is missing; accepted: {}",
                              path_.empty() ? "" : path_ + ": ", key, fmt::join(keys, ", "));
    }
    return false;
  }
  return true;
}

RecordField RecordField::at(std::string_view key) const {
  const json* child = nullptr;
  if (value_ != nullptr && value_->is_object() && value_->contains(key)) child = &(*value_)[key];
  return {child, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key), problem_};
}

std::int64_t RecordField::whole_number(std::int64_t smallest) const {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  if (value_ != nullptr && value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(largest)) {
    const auto number = static_cast<std::int64_t>(value_->get<std::uint64_t>());
    if (number >= smallest) return number;
  }
  refuse(fmt::format("a whole number from {} to {}", smallest, largest));
  return 0;
}

std::uint64_t RecordField::unsigned_number() const {
  if (value_ != nullptr && value_->is_number_unsigned()) return value_->get<std::uint64_t>();
  refuse("a whole number of at least 0");
  return 0;
}

double RecordField::number() const {
  if (value_ != nullptr && value_->is_number()) return value_->get<double>();
  refuse("a number");
  return 0;
}

bool RecordField::boolean() const {
  if (value_ != nullptr && value_->is_boolean()) return value_->get<bool>();
  refuse("true or false");
  return false;
}

std::string RecordField::text() const {
  if (value_ != nullptr && value_->is_string()) return value_->get<std::string>();
  refuse("a text");
  return {};
}

bool RecordField::is_null() const { return value_ != nullptr && value_->is_null(); }

std::vector<RecordField> RecordField::elements(std::size_t most) const {
  std::vector<RecordField> result;
  if (value_ == nullptr || !value_->is_array() || value_->size() > most) {
    refuse(fmt::format("an array of at most {}", most));
    return result;
  }
  for (std::size_t index = 0; index < value_->size(); ++index) {
    result.emplace_back(&(*value_)[index], fmt::format("{}[{}]", path_, index), problem_);
  }
  return result;
}

std::vector<std::string> RecordField::texts(std::size_t most) const {
  std::vector<std::string> result;
  for (const RecordField& element : elements(most)) result.push_back(element.text());
  return result;
}

}  // namespace kvsim
