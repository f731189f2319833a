// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/config.h"
#include "sim/decoder/incremental.h"
#include "sim/decoder/kv_cache.h"
#include "sim/decoder/weights_view.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// A decoder computed by libtorch, operator by operator as Hugging Face's transformers 5.24 calls
/// them. No name of libtorch stands here: what implements this is loaded at run time.
namespace kvsim::gpu {

/// Which of transformers' attention functions is called.
enum class AttentionFunction : std::uint8_t {
  eager,       ///< matmul, mask, softmax, matmul
  sdpa,        ///< scaled_dot_product_attention, which chooses
  sdpa_flash,  ///< its flash kernel, on the CPU
  sdpa_math,   ///< its plain kernel
};

/// What a model is made from. All of it must outlive the model.
struct TorchModelSpec {
  const ModelConfig* config = nullptr;
  const DecoderWeights* weights = nullptr;
  softfloat::Format storage;  ///< bfloat16, binary16, binary32 or binary64
  bool on_cuda = false;
  bool uses_onednn = true;  ///< holds for the whole process
};

/// Tokens that are computed together, behind the rows that the cache holds.
struct TorchPass {
  std::span<const std::int32_t> tokens;
  bool all_logits = false;  ///< of every row, not only of the last one
  /// Takes the hidden states behind each layer ("hidden"), and with `every_operator` what each
  /// operator gives, named as those of IncrementalDecoder; may be empty.
  std::function<void(const OperatorOutput&)> observer = {};
  bool every_operator = false;
  /// Hidden states that flow on in place of computed ones: [hidden] numbers of the storage format.
  std::span<const HiddenReplacement> replaced = {};
};

/// One sequence with its cache. Not shared between threads.
class TorchSequence {
 public:
  TorchSequence() = default;
  TorchSequence(const TorchSequence&) = delete;
  TorchSequence& operator=(const TorchSequence&) = delete;
  virtual ~TorchSequence() = default;

  /// Logits [rows][vocabulary] of the last row or of all, exact. Errors: (file) what libtorch
  /// throws, in one line; the cache then holds what it held.
  [[nodiscard]] virtual Result<std::vector<double>> pass(const TorchPass& pass) = 0;
  /// How many rows the cache holds.
  [[nodiscard]] virtual std::int64_t rows() const = 0;
  /// Forgets rows from `rows` on.
  virtual void truncate(std::int64_t rows) = 0;
  /// Rows first … first + count − 1 of the cache, [kv_heads][count][head_dim], exact.
  [[nodiscard]] virtual std::vector<double> state(std::int64_t layer, KvPart part,
                                                  std::int64_t first, std::int64_t count) const = 0;
  /// Puts other numbers of the storage format in their place. Errors: (file) what libtorch throws.
  [[nodiscard]] virtual Result<bool> set_state(std::int64_t layer, KvPart part, std::int64_t first,
                                               std::span<const double> numbers) = 0;
  [[nodiscard]] virtual std::unique_ptr<TorchSequence> copy() const = 0;
};

/// The weights of a model in one storage format. Immutable: threads may share it.
class TorchModel {
 public:
  TorchModel() = default;
  TorchModel(const TorchModel&) = delete;
  TorchModel& operator=(const TorchModel&) = delete;
  virtual ~TorchModel() = default;

  /// A sequence that refers to this model; each of its passes uses `threads` threads.
  [[nodiscard]] virtual std::unique_ptr<TorchSequence> open(AttentionFunction attention,
                                                            std::int64_t threads) const = 0;
};

/// What the module offers under this name: makes a model, or holds an error. Errors: (unavailable)
/// no CUDA device; (file) what libtorch throws.
using MakeTorchModel = void(const TorchModelSpec& spec, Result<std::unique_ptr<TorchModel>>& model);
inline constexpr const char* make_torch_model_name = "kvsim_make_torch_model";

}  // namespace kvsim::gpu
