// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// What the program and libkvsim_torch.so tell each other. Both sides are compiled together.
namespace kvsim::gpu {

/// Which implementation scaled_dot_product_attention may choose.
enum class TorchAttention : std::uint8_t {
  chosen,
  flash,
  math,
  eager,  ///< written out, as transformers' eager_attention_forward has it
};

/// A checked call with its attributes read.
struct TorchCall {
  const OperatorCall& call;
  bool causal = false;
  std::optional<double> scale;
  std::optional<double> epsilon;
  TorchAttention attention = TorchAttention::chosen;
  /// softmax, log-softmax, sum, mean: the dtype argument; none: the format of the input.
  std::optional<softfloat::Format> output;
};

/// libtorch on one device.
class TorchModule {
 public:
  TorchModule() = default;
  TorchModule(const TorchModule&) = delete;
  TorchModule& operator=(const TorchModule&) = delete;
  virtual ~TorchModule() = default;

  /// Versions and flags, for the fingerprint.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
  /// Errors (usage): what libtorch refuses, in its words.
  [[nodiscard]] virtual Result<Tensor> run(const TorchCall& call) = 0;
  virtual void set_threads(std::int64_t n) = 0;
};

/// What to start libtorch with.
struct TorchOptions {
  bool cuda = false;
  bool onednn = true;
};

/// Type of `kvsim_make_torch_module`, which the module exports: a new TorchModule, or null with a
/// line in `error`.
using MakeTorchModule = TorchModule*(const TorchOptions& options, std::string* error);

}  // namespace kvsim::gpu
