// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/attention/run.h"
#include "sim/decoder/formats.h"
#include "sim/decoder/kv_cache.h"
#include "sim/decoder/launch.h"
#include "sim/decoder/plants.h"
#include "sim/decoder/rope_source.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch.h"
#include "sim/engine/numbers.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::decoder {

/// Matrices of one pass, [rows][width].
enum class Buffer : std::uint8_t {
  hidden,    ///< the residual stream
  normed,    ///< what a norm made of it
  query,     ///< after projection, norm and RoPE
  key,       ///< the same of the pass's own rows
  value,     ///< of the pass's own rows
  attended,  ///< attention's result
  branch,    ///< what is added to the residual stream
  gate,      ///< of the MLP; then its product with `up`
  up,
};
inline constexpr std::size_t buffer_count = 9;

/// Elements of a row of the buffer.
[[nodiscard]] std::int64_t buffer_width(const DecoderShape& shape, Buffer buffer);

/// One norm: every `width` elements of each row, scaled by weight[width].
struct NormStep {
  Buffer in = Buffer::hidden;
  Buffer out = Buffer::normed;
  std::int64_t width = 0;
  const float* weight = nullptr;
};

/// One linear layer.
struct LinearStep {
  Buffer in = Buffer::normed;
  Buffer out = Buffer::query;
  std::int64_t terms = 0;
  std::int64_t outputs = 0;
  NumberPointer weights;        ///< [terms][outputs], as floats or codes
  bool by_outputs = false;      ///< weights are [outputs][terms] instead
  softfloat::Format format;     ///< of the weights
  const float* bias = nullptr;  ///< [outputs] or null
};

/// What RoPE and attention of one layer need.
struct LayerPosition {
  double rope_base = 10000;
  std::vector<float> custom_frequencies;  ///< of a scaled RoPE; empty: base^(−2i/d)
  std::vector<double> exact_frequencies;  ///< [head_dim ÷ 2], in binary64
  std::int64_t window = 0;
};

/// Keys and values of one layer.
struct CacheLayer {
  KvCache* cache = nullptr;
  std::int64_t layer = 0;
};

/// The epsilon that is planted: hundreds of times what norms are used to.
inline constexpr double wrong_epsilon = 1;

/// How a decoder computes.
struct OperatorSetup {
  DecoderShape shape;
  DecoderFormats formats;
  Dispatch dispatch;                        ///< its views must outlive the operators
  std::string_view decode_attention = {};   ///< instead of the dispatch's; empty: as it says
  std::string_view prefill_attention = {};  ///< likewise
  /// Where exact arithmetic takes its element-wise operators from, and its norm but for the sums;
  /// null: from `dispatch`.
  const Dispatch* element_wise = nullptr;
  AttentionOptions attention = {};
  EngineOptions engine = {};
  Plant plant = Plant::none;
  RopeSource rope_source = {};
};

/// The operators of a decoder on the rows of one pass, one after another. What computes them is the
/// only difference between arms, so that several can share one weight matrix while it is in memory.
class RowOperators {
 public:
  virtual ~RowOperators() = default;

  /// Begins a pass. The views of `rows` must stay valid through it.
  virtual void begin(const PassRows& rows) = 0;
  /// Takes the first hidden states, [rows][hidden] numbers of the activations' format.
  virtual void start(std::span<const double> hidden) = 0;
  /// Puts other numbers of the activations' format, [hidden], in place of a hidden state. Rows
  /// count from the first one that is computed.
  virtual void replace_hidden(std::int64_t row, std::span<const double> values) = 0;
  virtual Result<bool> norm(const NormStep& step) = 0;
  virtual Result<bool> linear(const LinearStep& step) = 0;
  /// Rotates query and key.
  virtual Result<bool> rotate(const LayerPosition& layer) = 0;
  /// Writes key and value, rounded to the cache's format, to rows of the cache that are held.
  virtual Result<bool> store(const CacheLayer& cache) = 0;
  /// attended = attention of query over the cache, up to the last row of the pass.
  virtual Result<bool> attend(const LayerPosition& layer, const CacheLayer& cache) = 0;
  /// gate = activation(gate) · up.
  virtual Result<bool> multiply_gate() = 0;
  /// hidden = hidden + branch.
  virtual Result<bool> add_branch() = 0;
  /// The logits of the rows from `first` on, as a linear layer of `step.in`, with the model's cap:
  /// [rows − first][outputs].
  virtual Result<std::vector<double>> head(const LinearStep& step, std::int64_t first) = 0;

  /// Elements of a buffer as doubles, which hold them exactly.
  [[nodiscard]] virtual std::vector<double> read(Buffer buffer, std::int64_t first_row,
                                                 std::int64_t count) const = 0;
  /// Whether an exponential was known within bounds only.
  [[nodiscard]] virtual bool exp_bounded() const { return false; }
};

/// The operators of a dispatch. Errors (usage): a kernel's name that is not in its table.
[[nodiscard]] Result<std::unique_ptr<RowOperators>> make_operators(const OperatorSetup& setup);
[[nodiscard]] Result<std::unique_ptr<RowOperators>> make_kernel_operators(
    const OperatorSetup& setup);
[[nodiscard]] std::unique_ptr<RowOperators> make_wide_operators(const OperatorSetup& setup);

}  // namespace kvsim::decoder
