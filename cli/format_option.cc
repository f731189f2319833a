// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/format_option.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/printable.h"

namespace kvsim {

Result<const softfloat::NamedFormat*> format_named(std::string_view what, std::string_view text) {
  if (const softfloat::NamedFormat* row = softfloat::find_format(text)) return row;
  std::vector<std::string_view> names;
  for (const softfloat::NamedFormat& row : softfloat::formats()) names.push_back(row.name);
  std::string message = fmt::format("{} is {}; accepted are {} and their aliases (kvsim formats)",
                                    what, in_quotes(text), join_words(names));
  const std::string_view near = softfloat::nearest_format_name(text);
  if (!near.empty()) message += fmt::format("; did you mean {}?", near);
  return Error{ErrorKind::usage, std::move(message)};
}

}  // namespace kvsim
