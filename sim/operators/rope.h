// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/engine/columns.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Rotary position embedding: the pair (x, y) of channels becomes (x cos α − y sin α,
/// y cos α + x sin α), α = position × frequency, frequency i = base^(−2i/d).
/// Source: Su et al., "RoFormer", 2021, section 3.2.2.
namespace kvsim {

/// Which channels form pair i of d/2.
enum class RopePairs : std::uint8_t {
  half_split,   ///< i and i + d/2: transformers, GPT-NeoX
  interleaved,  ///< 2i and 2i + 1: RoFormer, GPT-J, Llama's own code
};

/// How the frequencies come about, in binary32.
enum class RopeFrequencies : std::uint8_t {
  reciprocal_of_power,  ///< 1 ÷ base^(2i/d): transformers
  repeated_product,     ///< position · s · s …, s = base^(−2/d), i factors: ggml
};

/// How a rotated element is rounded.
enum class RopeArithmetic : std::uint8_t {
  storage_steps,  ///< each product and the sum are rounded to storage: PyTorch, element-wise
  rounded_once,   ///< products and sum in binary32, rounded after each; then to storage
  fused,          ///< the sum is one fused multiply-add on the second product; then to storage
};

/// One row.
struct RopeKernel {
  std::string_view name = {};    ///< "transformers-rope"
  std::string_view device = {};  ///< device class: "CPU", "GPU", "any"
  RopePairs pairs = RopePairs::half_split;
  RopeFrequencies frequencies = RopeFrequencies::reciprocal_of_power;
  softfloat::Format frequency = {};  ///< the frequency is rounded to it
  softfloat::Format position = {};   ///< so is the position
  softfloat::Format angle = {};      ///< and their product
  /// Cosines and sines, correctly rounded in binary32, are rounded to it; none: to storage.
  std::optional<softfloat::Format> table = {};
  RopeArithmetic arithmetic = RopeArithmetic::storage_steps;
  std::string_view source = {};  ///< repository and file, or document
  std::string_view date = {};    ///< of the source: a version, a month or a year
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note = {};  ///< what is assumed; may be empty
};

/// Every kernel, in the order in which they are listed to the user.
[[nodiscard]] std::span<const RopeKernel> rope_kernels();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const RopeKernel* find_rope_kernel(std::string_view name);

/// What a table is made for.
struct RopeTableProblem {
  softfloat::Format storage = {};  ///< of q and k
  std::int64_t rotated = 0;        ///< d: rotated channels of a head, even
  double base = 10000;             ///< > 0; rounded to binary32
  std::int64_t positions = 0;      ///< 0 … positions − 1
  /// Frequencies of a scaled model instead of base^(−2i/d): d/2 of them, or none.
  std::span<const float> custom_frequencies = {};
};

/// Angles, cosines and sines of positions 0 … positions − 1.
struct RopeTable {
  std::int64_t positions = 0;
  std::int64_t pairs = 0;     ///< d/2
  std::vector<float> angle;   ///< [positions][pairs], radians
  std::vector<float> cosine;  ///< [positions][pairs]
  std::vector<float> sine;    ///< [positions][pairs]
};

/// The table of a kernel. Errors (usage) name a size or base that cannot be; at most 2^30 entries.
[[nodiscard]] Result<RopeTable> make_rope_table(const RopeKernel& kernel,
                                                const RopeTableProblem& problem);

/// Heads to rotate: q or k.
struct RopeProblem {
  softfloat::Format storage = {};  ///< of x and the result
  std::int64_t heads = 0;
  std::int64_t length = 0;          ///< positions of x
  std::int64_t head_dim = 0;        ///< channels; those beyond 2 × table.pairs are copied
  std::int64_t first_position = 0;  ///< of x; the table must reach first_position + length − 1
  const float* x = nullptr;         ///< [heads][length][head_dim]
};

/// out = x rotated, numbers of `storage`, same layout; `out` may be `x`. Errors (usage) name a size
/// that cannot be.
Result<bool> apply_rope(const RopeKernel& kernel, const RopeTable& table,
                        const RopeProblem& problem, float* out, const EngineOptions& options = {});

}  // namespace kvsim
