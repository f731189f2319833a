// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/config.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// RoPE factors of libtorch without the model that takes them. No name of libtorch stands here.
namespace kvsim::gpu {

/// cos and sin, [count][head_dim], exact: of transformers' layout, in which both halves of a row
/// are equal (in the interleaved one each number stands twice).
struct TorchRopeFactors {
  std::vector<double> cosine;
  std::vector<double> sine;
};

/// Those of one model in one format, computed on the CPU by one thread. Immutable: threads may
/// share it.
class TorchRope {
 public:
  TorchRope() = default;
  TorchRope(const TorchRope&) = delete;
  TorchRope& operator=(const TorchRope&) = delete;
  virtual ~TorchRope() = default;

  /// Of the layers with or without a window, at positions first … first + count − 1. Errors
  /// (file): what libtorch throws.
  [[nodiscard]] virtual Result<TorchRopeFactors> factors(bool windowed, std::int64_t first,
                                                         std::int64_t count) const = 0;
};

/// What the module offers under this name: makes one from a copy of the config; `storage` is
/// bfloat16, binary16, binary32 or binary64. Errors (file): what libtorch throws.
using MakeTorchRope = void(const ModelConfig& config, const softfloat::Format& storage,
                           Result<std::unique_ptr<TorchRope>>& rope);
inline constexpr const char* make_torch_rope_name = "kvsim_make_torch_rope";

}  // namespace kvsim::gpu
