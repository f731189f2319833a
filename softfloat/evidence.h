// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string_view>

namespace kvsim::softfloat {

/// How well a fact in one of the project's tables is supported, strongest first.
enum class Evidence : std::uint8_t {
  documented,  ///< a specification or the vendor's own manual says so
  measured,    ///< seen in the output of the hardware or program itself
  inferred,    ///< follows from documented or measured facts by an argument
  assumed,     ///< a plausible choice without support
};

/// The grade's name as printed: "documented", "measured", "inferred" or "assumed".
[[nodiscard]] constexpr std::string_view to_string(Evidence evidence) {
  switch (evidence) {
    case Evidence::documented:
      return "documented";
    case Evidence::measured:
      return "measured";
    case Evidence::inferred:
      return "inferred";
    case Evidence::assumed:
      break;
  }
  return "assumed";
}

}  // namespace kvsim::softfloat
