// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "softfloat/result.h"

namespace kvsim {

/// What the reader of small JSON files accepts; it bounds the memory that any file can make it use.
struct JsonLimits {
  static constexpr std::size_t bytes = 1 << 20;  ///< of the whole text
  static constexpr std::size_t depth = 8;        ///< objects and arrays inside each other
  static constexpr std::size_t fields = 1 << 14;
  static constexpr std::size_t path_bytes = 512;  ///< of one field's path
};

/// An object or an array; its members are fields of their own.
struct JsonContainer {
  bool is_array = false;
  std::int64_t size = 0;  ///< members

  friend bool operator==(const JsonContainer&, const JsonContainer&) = default;
};

/// null, true or false, a whole number, another number, a text, an object or array.
using JsonValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonContainer>;

/// One value of a JSON object with the keys that lead to it: "rope_scaling.factor",
/// "layer_types[3]".
struct JsonField {
  std::string path;
  JsonValue value;
};

/// Every value of the JSON object in `text`, in the order of the text; the outermost object itself
/// is left out. Numbers are read without regard to the locale. Errors are ErrorKind::file, one line
/// without a file's name: not one JSON object, a key that stands twice in its object, a key with a
/// dot or bracket, a whole number beyond 64 bits, or more than JsonLimits.
[[nodiscard]] Result<std::vector<JsonField>> read_json_fields(std::string_view text);

/// What kind of value it is, as printed: "null", "true", "the number 3", "the text \"a\"",
/// "an object", "an array".
[[nodiscard]] std::string describe(const JsonValue& value);

}  // namespace kvsim
