// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/parallel.h"
#include "softfloat/result.h"

namespace kvsim {

/// Runs task(0) … task(count − 1), each a Result<bool>, on up to `threads` threads. Holds true, or
/// the error of the first task that has one.
template <class Task>
Result<bool> run_tasks(std::int64_t count, int threads, const Task& task) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
  parallel_for(count, threads, [&](std::int64_t i) {
    const Result<bool> done = task(i);
    if (!done) errors[static_cast<std::size_t>(i)] = done.error();
  });
  for (const std::optional<Error>& error : errors) {
    if (error) return *error;
  }
  return true;
}

}  // namespace kvsim
