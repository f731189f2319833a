// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kvsim::experiments {

/// A way to compute that the study precision compares.
struct PrecisionRow {
  std::string_view name;
  /// Settings of an arm, of which the first that the engine accepts counts; empty ones are none.
  std::array<std::string_view, 2> settings;
  /// Settings of the logits alone, which count where the margin is small; empty: there are none.
  std::string_view head;
};

inline constexpr std::array precision_rows{
    PrecisionRow{"fp16", {"storage=fp16,weights=fp16", "storage=fp16"}, ""},
    PrecisionRow{"bf16", {"storage=bf16,weights=bf16", "storage=bf16"}, ""},
    PrecisionRow{"fp32", {"dispatch=fp32,storage=fp32,weights=fp32", "storage=fp32"}, ""},
    // Weights kept in bfloat16, everything computed in float32: arXiv 2506.09501.
    PrecisionRow{"LayerCast", {"dispatch=layercast,storage=fp32,weights=bf16", ""}, ""},
    // The logits alone in float32, where the margin is small: arXiv 2609.26621.
    PrecisionRow{"fp32 head", {"", ""}, "head=fp32"},
};

/// The margin, in units in the last place of the larger logit, up to which the second head counts
/// in texts. The threshold of 1e-3 of arXiv 2609.26621 is below one unit of bfloat16 logits above
/// 2^-3: it means exact ties there.
inline constexpr double head_margin_ulps = 1;
/// Margins at which the cost is shown; a negative one is none of the steps.
inline constexpr std::array<double, 6> swept_margins{-1, 0, 1, 2, 4, 8};

}  // namespace kvsim::experiments
