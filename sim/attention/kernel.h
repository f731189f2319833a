// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "sim/exp_models.h"
#include "sim/sum.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"

/// Attention kernels as rows of parameters. docs/attention.md says what each parameter means,
/// rounding by rounding; the words here are those of that page.
namespace kvsim {

/// The algorithm that a row parametrises.
enum class AttentionFamily : std::uint8_t {
  eager,         ///< scores, probabilities and outputs are matrices in memory
  online_tiles,  ///< blocks of keys, running maximum and sum: FlashAttention and its relatives
  paged,         ///< vLLM paged attention v1 and v2
  torch_cpu,     ///< PyTorch's flash attention on a CPU
  llama_cpu,     ///< llama.cpp on a CPU, key by key
};

/// How a kernel sums products when tensors are stored in one format: the text of an order
/// (sim/order.h), `mma(UNIT)` for a chain on a matrix unit. CPU families whose orders depend on the
/// shape leave both empty.
struct StorageSums {
  softfloat::Format storage;
  std::string_view scores;             ///< of q·k, over head_dim
  std::string_view values;             ///< of P·V, over keys
  Product product = Product::rounded;  ///< of orders that are not a matrix unit
};

/// What computes e^x in a softmax.
enum class SoftmaxExp : std::uint8_t {
  correctly_rounded,
  gpu,  ///< as the spec page says, bounded by ex2.approx
};

/// Parameters of AttentionFamily::eager.
struct EagerRule {
  bool scale_on_both = false;       ///< q and k are multiplied by √scale instead of their product
  bool softmax_in_storage = false;  ///< every step of the softmax is rounded to storage
  std::string_view row_sum;         ///< order of the sum of e
  SoftmaxExp exp = SoftmaxExp::gpu;
  /// Instead of orders: linear kernels (sim/linear.h) of q·k and P·V, chosen by queries, keys and
  /// head_dim of one head, and a softmax kernel (sim/operators/softmax.h).
  std::string_view scores_kernel = {};
  std::string_view values_kernel = {};
  std::string_view softmax_kernel = {};
};

/// Parameters of AttentionFamily::torch_cpu.
struct TorchCpuRule {
  std::int64_t lanes = 16;  ///< numbers of a vector
  /// Linear kernel of q·k, chosen by the queries and keys of a block and head_dim.
  std::string_view scores_kernel;
  ExpModel tail_exp = ExpModel::correctly_rounded;  ///< of the last scores, no whole vector
  ExpModel rescale_exp = ExpModel::libm_expf;       ///< of the old maximum minus the new one
};

/// Columns of a tile for head dimensions up to head_dim.
struct TileColumns {
  std::int64_t head_dim = 0;
  std::int64_t columns = 0;        ///< when the keys are not split
  std::int64_t split_columns = 0;  ///< when they are split or lie in pages
  /// The columns where one of these holds, split or not; 0: makes no difference.
  std::int64_t narrow_columns = 0;
  bool narrow_if_causal = false;
  bool narrow_if_windowed = false;
  bool narrow_if_paged = false;
};

/// How scale, log2 e and the maximum enter the exponent.
enum class ExponentFold : std::uint8_t {
  fused,          ///< x = fma(s, scale_log2, −m·scale_log2); r from (m − m')·scale_log2
  fused_rescale,  ///< the same, and r = exp2(fma(m, scale_log2, −m'·scale_log2))
  unfused,        ///< x = s·scale_log2 − m·scale_log2, each rounded
  natural,        ///< scores are scaled first; x = s − m, p = exp(x)
};

/// How a row's probabilities are summed; docs/attention.md, "Row sum".
enum class RowSumRule : std::uint8_t { quad, packed, unit, butterfly };

/// How the number of splits of the keys is chosen.
enum class SplitPolicy : std::uint8_t {
  never,
  wave_efficiency,       ///< FlashAttention-2 and -3: the fewest with 85 % of the best efficiency
  fill_multiprocessors,  ///< FlashAttention-4: as many as multiprocessors are left
  chunk_search,          ///< FlashInfer: the smallest chunk with which the launch fits
};

/// The numbers of a split policy.
struct SplitRule {
  SplitPolicy policy = SplitPolicy::never;
  std::int64_t tile_rows = 64;                ///< queries of a tile
  std::int64_t slots_per_multiprocessor = 1;  ///< tiles that run on it at the same time
  std::int64_t whole_blocks = 0;              ///< not split if there are at most this many blocks
  std::int64_t most_splits = 128;
  std::int64_t small_head_dim = 0;        ///< up to it a tile has small_head_tile_rows instead
  std::int64_t small_head_tile_rows = 0;  ///< 0: as tile_rows
  std::int64_t tall_tile_rows = 0;        ///< of a tile where the rows exceed tile_rows; 0: none
  /// wave_efficiency: whether numbers of splits that change no block count do not compete.
  bool skips_equal_shares = true;
  /// FlashAttention-3 and -4: the heads of a group are rows of one tile, a window shortens what is
  /// counted, and what is divided are the blocks that a tile of rows visits in its own sequence.
  bool divides_visited_blocks = false;
  /// Where the launch names every length, the number chosen, as for a batch of 1, is the most that
  /// a sequence gets: its own is in proportion to its blocks among those of the whole launch.
  bool shares_among_sequences = false;
};

/// How the outputs of splits are merged; docs/attention.md, "Splits".
enum class SplitMerge : std::uint8_t {
  log_sum_weights,           ///< FlashAttention-2: weights exp(lse − total lse)
  normalized_weights,        ///< FlashAttention-3: exp(lse − M) ÷ Σ; zero weights are skipped
  base2_normalized_weights,  ///< FlashAttention-4: the same with exp2(lse·log2 e − M·log2 e)
  serial_states,             ///< FlashInfer: states joined one after another
};

/// Where a soft cap c enters; the scale that is left for the exponent follows the dash.
enum class SoftCapRule : std::uint8_t {
  folded,             ///< tanh(s · (scale ÷ c)) – c
  folded_reciprocal,  ///< tanh(s · (scale · (1 ÷ c))) – c
  divided,            ///< c · tanh(s · scale ÷ c) – 1
  scaled_before,      ///< c · tanh(s), where the query was multiplied by scale ÷ c – 1
};

/// How maximum m and row sum l become the lse; scale is the one that a soft cap left.
enum class LogSumRule : std::uint8_t {
  by_scale,       ///< fma(m, scale, log l)
  by_scale_log2,  ///< fma(m, scale_log2 · ln 2, log l)
  base_2,         ///< (m · scale_log2 + log2 l) · ln 2
  fused_base_2,   ///< fma(m, scale_log2, log2 l) · ln 2
};

/// What becomes of a row whose running maximum has not risen, because each score so far is −∞ (q·k
/// overflowed); docs/attention.md, "Scores of −∞".
enum class UnrisenMaximum : std::uint8_t {
  zero,               ///< enters exponents and the rescale factor as 0: p = 0, r = 0
  zero_in_exponents,  ///< the rescale factor only in blocks that hide keys, and under a window
  zero_where_masked,  ///< both only in the row's first block and in blocks that hide keys
  finite,             ///< is a finite number already: nothing is done
  finite_mask,        ///< is finite, and the score of masked keys: such a row ends with O · 0
};

/// Parameters of AttentionFamily::online_tiles.
struct TileRule {
  std::span<const TileColumns> tiles;  ///< by head_dim, increasing; beyond the last: not supported
  bool last_to_first = false;          ///< direction of the walk over the blocks
  ExponentFold fold = ExponentFold::fused;
  float rescale_threshold = 0;  ///< the maximum is kept while it grew by less, in log2; 0: never
  bool emulated_exponentials = false;  ///< some columns take FlashAttention-4's polynomial
  float maximum_offset = 0;            ///< added to scores before they enter the maximum
  float flush_below = 0;               ///< p and r are 0 where x is below this; 0: nowhere
  RowSumRule row_sum = RowSumRule::quad;
  SplitRule split = {};
  SplitMerge merge = SplitMerge::log_sum_weights;
  bool always_split_tile = false;   ///< the split tile serves where nothing is split, too
  bool operands_in_half = false;    ///< q, k, v and P are converted to binary16
  bool divides = false;             ///< out = O ÷ l instead of O · (1 ÷ l)
  bool output_in_binary32 = false;  ///< the output is not rounded to storage
  SoftCapRule soft_cap = SoftCapRule::folded;
  LogSumRule log_sum = LogSumRule::by_scale;
  bool scale_log2_in_binary32 = false;  ///< scale · log2 e is a binary32 product
  UnrisenMaximum unrisen = UnrisenMaximum::zero;
  float first_maximum = -std::numeric_limits<float>::infinity();  ///< where the maximum starts
  bool nan_sum_is_empty = false;  ///< the lse is −∞ also where the row sum is NaN
};

/// Parameters of AttentionFamily::paged.
struct PagedRule {
  enum class Version : std::uint8_t { chosen, v1, v2 };
  Version version = Version::chosen;
};

/// One row.
struct AttentionKernel {
  std::string_view name;  ///< "h100-fa3"
  AttentionFamily family = AttentionFamily::eager;
  std::string_view device;           ///< device class: "H100 (sm90)"
  std::int64_t multiprocessors = 0;  ///< of the device; 0 for CPUs
  std::span<const StorageSums> storages;
  const EagerRule* eager = nullptr;  ///< exactly the family's own rule is set
  const TileRule* tiles = nullptr;
  const PagedRule* paged = nullptr;
  const TorchCpuRule* torch_cpu = nullptr;
  std::string_view source;  ///< repository and files
  std::string_view date;    ///< of the snapshot that was read
  softfloat::Evidence evidence = softfloat::Evidence::inferred;
  std::string_view note;  ///< what is assumed; may be empty
};

/// Every kernel, in the order in which they are listed to the user.
[[nodiscard]] std::span<const AttentionKernel> attention_kernels();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const AttentionKernel* find_attention_kernel(std::string_view name);

/// How a kernel sums with this storage; nullptr where it has no such storage.
[[nodiscard]] const StorageSums* find_storage(const AttentionKernel& kernel,
                                              const softfloat::Format& storage);

/// The format of a kernel's outputs: storage, or binary32 where it leaves them unrounded.
[[nodiscard]] softfloat::Format output_format(const AttentionKernel& kernel,
                                              const softfloat::Format& storage);

/// Whether the kernel takes AttentionMask::first_key.
[[nodiscard]] constexpr bool masks_padding(const AttentionKernel& kernel) {
  return kernel.family != AttentionFamily::online_tiles && kernel.family != AttentionFamily::paged;
}

/// "eager", "online tiles", "paged", "torch CPU" or "llama.cpp CPU".
[[nodiscard]] std::string_view to_string(AttentionFamily family);

}  // namespace kvsim
