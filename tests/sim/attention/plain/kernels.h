// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "tests/sim/attention/plain/common.h"
#include "tests/sim/attention/plain/random_problem.h"

namespace kvsim::plain {

/// The plain version of one row of the product, written down again.
struct Kernel {
  std::string_view name;
  Limits limits;
  std::function<Result(const Problem&)> run;
};

/// One for every row of attention_kernels().
[[nodiscard]] const std::vector<Kernel>& kernels();

}  // namespace kvsim::plain
