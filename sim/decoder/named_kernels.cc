// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/named_kernels.h"

#include <fmt/format.h>

#include <string_view>

#include "softfloat/formats.h"

namespace kvsim::decoder {

std::string_view activation_name(const Dispatch& dispatch, GateActivation activation) {
  switch (activation) {
    case GateActivation::silu:
      return dispatch.silu;
    case GateActivation::gelu:
      return dispatch.gelu;
    case GateActivation::gelu_tanh:
      break;
  }
  return dispatch.gelu_tanh;
}

Result<NamedKernels> find_kernels(const OperatorSetup& setup) {
  const bool exact = setup.dispatch.arithmetic == DispatchArithmetic::exact;
  const Dispatch& dispatch =
      exact && setup.element_wise != nullptr ? *setup.element_wise : setup.dispatch;
  const auto chosen = [](std::string_view override_name, std::string_view name) {
    return override_name.empty() ? name : override_name;
  };
  const std::string_view norm =
      setup.shape.norm_weight_plus_one ? dispatch.norm_plus_one : dispatch.norm;
  const std::string_view activation = activation_name(dispatch, setup.shape.activation);
  const std::string_view prefill = chosen(setup.prefill_attention, dispatch.attention_prefill);
  const std::string_view decode = chosen(setup.decode_attention, dispatch.attention_decode);
  const auto missing = [&](std::string_view what, std::string_view name) {
    return Error{ErrorKind::usage, fmt::format("{} kernel '{}' of dispatch {}; accepted: a name of "
                                               "the table of kernels",
                                               what, name.substr(0, 64), dispatch.name)};
  };
  const NormKernel* norm_row = find_norm_kernel(norm);
  const RopeKernel* rope_row = find_rope_kernel(dispatch.rope);
  const ActivationKernel* activation_row = find_activation_kernel(activation);
  const ResidualKernel* residual_row = find_residual_kernel(dispatch.residual);
  if (norm_row == nullptr) return missing("norm", norm);
  if (rope_row == nullptr) return missing("rope", dispatch.rope);
  if (activation_row == nullptr) return missing("activation", activation);
  if (residual_row == nullptr) return missing("residual", dispatch.residual);
  NamedKernels kernels{.norm = *norm_row,
                       .rope = *rope_row,
                       .activation = *activation_row,
                       .residual = *residual_row};
  // Which channels form a pair is the model's, not the kernel's.
  kernels.rope.pairs =
      setup.shape.rope_interleaved ? RopePairs::interleaved : RopePairs::half_split;
  if (setup.plant == Plant::rope_table_16_bit) {
    kernels.rope.frequency = kernels.rope.position = kernels.rope.angle = softfloat::binary16;
    kernels.rope.table = softfloat::binary16;
  }
  if (exact) {
    kernels.norm.order = "exact";
    return kernels;
  }
  kernels.prefill = find_attention_kernel(prefill);
  kernels.decode = find_attention_kernel(decode);
  if (kernels.prefill == nullptr) return missing("attention", prefill);
  if (kernels.decode == nullptr) return missing("attention", decode);
  return kernels;
}

}  // namespace kvsim::decoder
