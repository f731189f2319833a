// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/engine/columns.h"
#include "sim/exp_models.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Activations of the feed-forward block, element by element. Arithmetic is binary32, rounded after
/// each operation in the order written; the result is rounded to storage.
namespace kvsim {

enum class ActivationFunction : std::uint8_t {
  silu,       ///< x ÷ (1 + exp(−x))
  gelu,       ///< (x · ½) · (1 + erf(x · √½))
  gelu_tanh,  ///< (½ · x) · (1 + tanh(√(2/π) · (x + 0.044715 · (x · x · x))))
};

/// "silu", "gelu" or "gelu-tanh".
[[nodiscard]] std::string_view to_string(ActivationFunction function);

/// What computes tanh.
enum class TanhModel : std::uint8_t {
  correctly_rounded,
  sleef_u10,  ///< sleef_tanh_u10()
};

/// One row.
struct ActivationKernel {
  std::string_view name = {};    ///< "torch-cpu-silu"
  std::string_view device = {};  ///< device class: "CPU", "GPU", "any"
  ActivationFunction function = ActivationFunction::silu;
  ExpModel exp = ExpModel::correctly_rounded;  ///< silu
  /// silu: elements of the tensor after its last whole group of this many use `tail_exp`; 0: none.
  std::int64_t group = 0;
  ExpModel tail_exp = ExpModel::correctly_rounded;
  bool fused = false;  ///< gelu_tanh: x + 0.044715 · x³ is one fused multiply-add
  TanhModel tanh = TanhModel::correctly_rounded;  ///< gelu_tanh
  std::string_view source = {};                   ///< repository and file, or document
  std::string_view date = {};                     ///< of the source: a version, a month or a year
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note = {};  ///< what is assumed; may be empty
};

/// Every kernel, in the order in which they are listed to the user.
[[nodiscard]] std::span<const ActivationKernel> activation_kernels();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const ActivationKernel* find_activation_kernel(std::string_view name);

/// out[i] = the activation of x[i], rounded to `storage`; x is the whole tensor, and `out` may be
/// `x`. `exp` replaces the kernel's exp model, in the tail too. An error where the lengths differ
/// or the format has numbers that are not floats.
Result<bool> apply_activation(const ActivationKernel& kernel, const softfloat::Format& storage,
                              std::span<const float> x, std::span<float> out,
                              const std::optional<ExpFunction>& exp = {},
                              const EngineOptions& options = {});

}  // namespace kvsim
