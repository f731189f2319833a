// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_fields.h"

namespace kvsim {

/// The fields of a config.json, read by name. It remembers the first problem, and which fields
/// nobody asked for.
class ConfigFields {
 public:
  explicit ConfigFields(std::vector<JsonField> fields);

  /// Where the file holds a `text_config`, goes on with its members alone; the fields beside it
  /// count as unused.
  void enter_text_config();

  /// Whether a field of that name stands in the file and is not null.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Whether it stands there as null.
  [[nodiscard]] bool is_null(std::string_view name);

  /// A whole number from 1 to `most`; nothing where the field is missing or null.
  std::optional<std::int64_t> size(std::string_view name, std::int64_t most);
  /// The same, but a missing field is a problem and gives 1.
  std::int64_t required_size(std::string_view name, std::int64_t most);
  /// A whole number from 0.
  std::optional<std::int64_t> whole(std::string_view name);
  /// A number above 0.
  std::optional<double> positive(std::string_view name);
  /// The same, but a missing field is a problem and gives 1.
  double required_positive(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  /// An array of texts; empty where the field is missing or null.
  std::vector<std::string> texts(std::string_view name);

  /// A token id or an array of at most 256 of them, which changes no arithmetic: the field stays
  /// unused. Negative numbers mean no token; empty where the field is missing or null.
  std::vector<std::int64_t> token_ids(std::string_view name);
  /// A whole number from 1, which changes no arithmetic: the field stays unused. 0 where it is
  /// missing or null.
  std::int64_t unused_size(std::string_view name);

  /// Records a problem for every field that changes arithmetic in a way that is not supported,
  /// unless its value says that it changes nothing.
  void refuse_unsupported();

  /// Records that a needed field is missing.
  void missing(std::string_view name, std::string_view accepted);
  /// Records a problem; only the first one stays.
  void fail(std::string problem);
  [[nodiscard]] bool failed() const { return !problem_.empty(); }
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// The outermost names of the fields that were not asked for, each once, in the order of the
  /// file.
  [[nodiscard]] std::vector<std::string> unused() const;

 private:
  /// The index of a field; the number of fields if there is none.
  [[nodiscard]] std::size_t find(std::string_view name) const;
  /// The value of a field that is present and not null; otherwise nullptr.
  [[nodiscard]] const JsonValue* value_of(std::string_view name) const;
  /// The same, marked as used.
  const JsonValue* use(std::string_view name);
  void wrong(std::string_view name, const JsonValue& value, std::string_view accepted);

  std::vector<JsonField> fields_;
  std::vector<bool> used_;
  std::string prefix_;  ///< "text_config." once entered
  std::string problem_;
};

}  // namespace kvsim
