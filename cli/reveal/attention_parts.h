// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/reveal/attention_request.h"
#include "gpu/reveal/attention/reveal_attention.h"

/// What the reports of `reveal --op sdpa` are put together from.
namespace kvsim {

/// "KV blocks of 512, first to last, 2 splits, rescaled whenever the maximum rises".
[[nodiscard]] std::string walk_text(const gpu::AttentionRevelation& found);
/// "192 keys", "not seen".
[[nodiscard]] std::string blocks_text(const gpu::AttentionRevelation& found);
/// "2: keys 0–383, 384–399", "none seen".
[[nodiscard]] std::string splits_text(const gpu::AttentionRevelation& found);
/// The rule with its threshold.
[[nodiscard]] std::string rescale_text(const gpu::AttentionRevelation& found);
/// The order of P·V in the grammar, where it has one.
[[nodiscard]] std::string order_text(const gpu::RevealedValueSums& sums);
/// The orders of q·k, with the keys of each where there are several; why they are not told.
[[nodiscard]] std::string scores_text(const gpu::AttentionRevelation& found);
/// The order of the sum of p, or why it is not told.
[[nodiscard]] std::string weights_text(const gpu::AttentionRevelation& found);
/// The kernels that gave every output.
[[nodiscard]] std::vector<std::string> equal_kernels(const gpu::AttentionRevelation& found);
/// "10000 equal", "3 of 64 differ".
[[nodiscard]] std::string check_text(const gpu::KernelAgreement& one);
/// A float in hexadecimal.
[[nodiscard]] std::string hex_text(float value);

/// What was asked for, and what was found.
[[nodiscard]] Json attention_input_json(const AttentionRevealRequest& request);
[[nodiscard]] Json attention_json(const gpu::AttentionRevelation& found);

}  // namespace kvsim
