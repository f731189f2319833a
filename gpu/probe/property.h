// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvsim::gpu {

/// What was seen of one property of a unit, or what the table says of it.
struct Seen {
  enum class Kind : std::uint8_t {
    number,    ///< `number`
    at_least,  ///< the numbers that the unit takes show no more
    at_most,
    no_limit,    ///< nothing is cut off
    word,        ///< `word`
    not_visible  ///< no operands show it
  };
  Kind kind = Kind::not_visible;
  int number = 0;
  std::string word = {};

  friend bool operator==(const Seen&, const Seen&) = default;
};

[[nodiscard]] Seen seen_number(int number);
[[nodiscard]] Seen seen_word(std::string_view word);
/// "25", "at least 23", "no limit", "toward zero", "not visible".
[[nodiscard]] std::string to_string(const Seen& seen);

/// One property by name.
struct Property {
  std::string_view name;
  Seen seen;
};
using Properties = std::vector<Property>;

/// The property of that name; not visible where there is none.
[[nodiscard]] Seen find_property(const Properties& properties, std::string_view name);

/// Whether what was seen can be what the table says; nothing where it is not visible, or the table
/// says nothing.
[[nodiscard]] std::optional<bool> agrees(const Seen& seen, const Seen& declared);

/// Names of properties, as printed.
namespace property {
inline constexpr std::string_view structure = "structure";
inline constexpr std::string_view precision = "precision";
inline constexpr std::string_view rounding = "rounding";
inline constexpr std::string_view last_rounding = "rounding of the last addition";
inline constexpr std::string_view fraction_bits = "fraction bits among products";
inline constexpr std::string_view addend_bits = "fraction bits beside c";
inline constexpr std::string_view cut = "cut";
inline constexpr std::string_view zero_exponent = "zero exponent";
inline constexpr std::string_view product = "products";
inline constexpr std::string_view operand = "low bits of operands";
inline constexpr std::string_view subnormal_operands = "subnormal operands";
inline constexpr std::string_view subnormal_alignment = "exponent of subnormal operands";
inline constexpr std::string_view subnormal_results = "subnormal results";
inline constexpr std::string_view nan = "NaN";
inline constexpr std::string_view overflow = "overflow";
inline constexpr std::string_view cancelled = "sum that cancels";
inline constexpr std::string_view negative_zeros = "sum of -0 alone";
}  // namespace property

}  // namespace kvsim::gpu
