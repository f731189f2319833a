// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "tests/sim/attention/plain/common.h"

namespace kvsim::plain {

/// vLLM's two kernels, or its rule that chooses between them.
enum class PagedVersion : std::uint8_t { chosen, v1, v2 };

/// vLLM paged attention of one query over all keys. No lse.
[[nodiscard]] Result paged(PagedVersion version, const Problem& problem);

}  // namespace kvsim::plain
