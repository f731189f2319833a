// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <utility>

#include "softfloat/result.h"

namespace kvsim::statistics {

/// What was found, or nothing where the data could not tell; other errors stay errors.
template <class T>
[[nodiscard]] Result<std::optional<T>> if_it_can_tell(Result<T> found) {
  if (found) return std::optional<T>(std::move(*found));
  if (found.error().kind == ErrorKind::cannot_tell) return std::optional<T>();
  return found.error();
}

}  // namespace kvsim::statistics
