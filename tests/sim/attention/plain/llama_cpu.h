// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// llama.cpp on a CPU with AVX2: one query after another, key by key. The output is binary32.
[[nodiscard]] Result llama_cpu(const Problem& problem);

}  // namespace kvsim::plain
