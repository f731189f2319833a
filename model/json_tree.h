// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim {

/// What a tree of JSON values may hold: at most about 300 bytes of memory for each value, and the
/// texts.
struct JsonTreeLimits {
  static constexpr std::size_t depth = 32;
  static constexpr std::size_t values = std::size_t{1} << 18;
};

/// Builds a tree from the parser's events within the limits. A class derived from it can keep large
/// tables out of the tree. The first problem is kept, without a file's name.
class JsonTreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  /// Kept as the text in the file: the parser's own value depends on the locale.
  bool number_float(number_float_t /*value*/, const string_t& text) override { return add(text); }
  bool string(string_t& value) override { return add(value); }
  bool binary(binary_t& /*value*/) override { return refuse("binary data; accepted: JSON"); }
  bool start_object(std::size_t /*size*/) override { return open(nlohmann::json::object()); }
  bool key(string_t& name) override;
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(nlohmann::json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& failure) override;

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] nlohmann::json& root() { return root_; }

 protected:
  bool refuse(std::string problem);
  /// Puts a value into the array or under the key that stands open.
  bool add(nlohmann::json value);
  [[nodiscard]] std::size_t depth() const { return levels_.size(); }
  /// The key of the value that comes next, where it stands in an object.
  [[nodiscard]] const std::string& next_key() const { return key_; }

 private:
  bool open(nlohmann::json value);
  bool close();

  nlohmann::json root_;
  std::vector<nlohmann::json*> levels_;
  std::string key_;
  std::size_t values_ = 0;
  std::string problem_;
};

/// Runs the parser over `text`, which must be one JSON object; what is wrong, or nothing.
[[nodiscard]] std::optional<std::string> build_json_tree(std::string_view text,
                                                         JsonTreeBuilder& builder);

}  // namespace kvsim
