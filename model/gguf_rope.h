// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace kvsim {

/// The tensor in which llama.cpp's converter leaves the factors of Llama 3.1's RoPE scaling.
inline constexpr const char* rope_factors_tensor = "rope_freqs.weight";

/// Llama 3.1's scaling of RoPE, as config.json has it. The factors alone do not tell the last three
/// numbers: they are those of every Llama 3.1, 3.2 and 3.3.
struct Llama3RopeScaling {
  double factor = 8;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double original_positions = 8192;
};

/// The scaling that gives these factors, by which the frequencies base^(−2i ÷ head_dim) are
/// divided; nothing where they are not Llama 3.1's within 1e-4, which is what the converter's
/// binary32 leaves, or head_dim is no power of two. Source: rope_scaling "llama3" of
/// huggingface/transformers, and LlamaModel of llama.cpp's convert_hf_to_gguf.py (2026-08).
[[nodiscard]] std::optional<Llama3RopeScaling> llama3_rope_scaling(std::span<const float> factors,
                                                                   double base,
                                                                   std::int64_t head_dim);

}  // namespace kvsim
