// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/reveal/attention_request.h"
#include "gpu/reveal/attention/attention_sweep.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/reveal/dependence.h"

namespace kvsim {

/// What was found of an attention layer.
[[nodiscard]] Report attention_reveal_report(const AttentionRevealRequest& request,
                                             const gpu::AttentionRevelation& found,
                                             const std::vector<gpu::Dependence>& dependences);

/// Sizes that share one attention order, and that of their last query.
[[nodiscard]] Report attention_sweep_report(const AttentionRevealRequest& request,
                                            const SweepRequest& sweep,
                                            const std::vector<gpu::AttentionSizes>& classes);

/// One line: why no kernel of the table explains what was seen; empty where one does.
[[nodiscard]] std::string unexplained_text(const gpu::AttentionRevelation& found);

}  // namespace kvsim
