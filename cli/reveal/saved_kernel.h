// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/kernels/own_kernels.h"
#include "cli/output.h"
#include "cli/reveal/attention_request.h"
#include "cli/reveal/request.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/reveal/reveal.h"

namespace kvsim {

/// What was revealed as a row of the user's kernel file. Requires found.explained() and an order of
/// the grammar for the largest class.
[[nodiscard]] OwnKernel own_kernel(const RevealRequest& request, const gpu::Revelation& found,
                                   const std::string& date);

/// The same of attention. Requires found.explained().
[[nodiscard]] OwnKernel own_kernel(const AttentionRevealRequest& request,
                                   const gpu::AttentionRevelation& found, const std::string& date);

/// Says in the report where the row is kept.
void add_saved(Report& report, const std::string& name, const std::string& path);

}  // namespace kvsim
