// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/attention/run.h"
#include "sim/decoder_shape.h"
#include "sim/dispatch.h"
#include "sim/operators/rope.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

namespace kvsim::decoder {

/// Matrices of one arm, [tokens][width].
enum class Buffer : std::uint8_t {
  hidden,    ///< the residual stream
  normed,    ///< what a norm made of it
  query,     ///< after projection, norm and RoPE
  key,       ///< the same, of all tokens: the cache
  value,     ///< of all tokens: the cache
  attended,  ///< attention's result
  branch,    ///< what is added to the residual stream
  gate,      ///< of the MLP; then its product with `up`
  up,
};
inline constexpr std::size_t buffer_count = 9;

/// Tokens that one call of the model computes together.
struct TokenGroup {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// One norm: every `width` elements of each row, scaled by weight[width].
struct NormStep {
  Buffer in = Buffer::hidden;
  Buffer out = Buffer::normed;
  std::int64_t width = 0;
  const float* weight = nullptr;
};

/// One linear layer, weights [terms][outputs].
struct LinearStep {
  Buffer in = Buffer::normed;
  Buffer out = Buffer::query;
  std::int64_t terms = 0;
  std::int64_t outputs = 0;
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< [outputs] or null
};

/// What RoPE and attention of one layer need.
struct LayerPosition {
  double rope_base = 10000;
  std::vector<float> custom_frequencies;  ///< of a scaled RoPE; empty: base^(−2i/d)
  std::int64_t window = 0;
};

/// What all arms have in common.
struct ArmSetup {
  DecoderShape shape;
  softfloat::Format storage;
  const Dispatch* dispatch = nullptr;
  std::vector<TokenGroup> groups;  ///< in increasing order, all tokens
  std::string_view decode_attention;
  std::string_view prefill_attention;
  /// Where an exact arm takes its element-wise operators from, and its norm but for the sums.
  const Dispatch* element_wise = nullptr;
  AttentionOptions attention;
  EngineOptions engine;

  [[nodiscard]] std::int64_t tokens() const { return groups.back().first + groups.back().count; }
  [[nodiscard]] bool is_exact() const { return dispatch->arithmetic == DispatchArithmetic::exact; }
  /// Elements of a row of the buffer.
  [[nodiscard]] std::int64_t width(Buffer buffer) const;
};

/// One way to compute the decoder, operator by operator, so that several ways can share one weight
/// matrix while it is in memory.
class DecoderArm {
 public:
  virtual ~DecoderArm() = default;

  /// Takes the first hidden states, [tokens][hidden] numbers of storage.
  virtual void start(std::span<const float> hidden) = 0;
  virtual Result<bool> norm(const NormStep& step) = 0;
  virtual Result<bool> linear(const LinearStep& step) = 0;
  /// Rotates query and key.
  virtual Result<bool> rotate(const LayerPosition& layer) = 0;
  /// attended = attention of query over key and value.
  virtual Result<bool> attend(const LayerPosition& layer) = 0;
  /// gate = activation(gate) · up.
  virtual Result<bool> multiply_gate() = 0;
  /// hidden = hidden + branch.
  virtual Result<bool> add_branch() = 0;

  /// Elements of a buffer as doubles, which hold them exactly.
  [[nodiscard]] virtual std::vector<double> read(Buffer buffer, std::int64_t first_token,
                                                 std::int64_t count) const = 0;
  /// Whether an exponential was known within bounds only.
  [[nodiscard]] virtual bool exp_bounded() const { return false; }
};

/// The arm of a dispatch. Errors (usage): a kernel's name that is not in its table.
[[nodiscard]] Result<std::unique_ptr<DecoderArm>> make_arm(const ArmSetup& setup);
[[nodiscard]] Result<std::unique_ptr<DecoderArm>> make_kernel_arm(const ArmSetup& setup);
[[nodiscard]] Result<std::unique_ptr<DecoderArm>> make_wide_arm(const ArmSetup& setup);

}  // namespace kvsim::decoder
