// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "run/arm.h"

namespace kvsim {

/// The largest number in a constructor's parentheses.
inline constexpr std::int64_t largest_parameter = std::int64_t{1} << 31;

/// How a constructor is written.
struct ConstructorRow {
  CacheConstructor constructor;
  std::string_view name;
  std::string_view form;  ///< the name with its parameters
  int parameters;
};

/// The row of that name, `on` included; null where there is none.
[[nodiscard]] const ConstructorRow* find_constructor(std::string_view name);

/// The row of a constructor.
[[nodiscard]] const ConstructorRow& constructor_row(CacheConstructor constructor);

/// Every name that find_constructor() knows.
[[nodiscard]] std::span<const std::string_view> constructor_names();

/// Every form, as an error message lists them.
[[nodiscard]] std::string constructor_forms();

}  // namespace kvsim
