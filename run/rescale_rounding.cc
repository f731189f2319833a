// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/rescale_rounding.h"

#include <algorithm>
#include <array>

#include "sim/attention/kernel.h"
#include "sim/linear.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"

namespace kvsim {
namespace {

constexpr std::string_view exact_order = "exact";

bool is_tiled(std::string_view attention) {
  const AttentionKernel* const kernel = find_attention_kernel(attention);
  return kernel != nullptr && kernel->family == AttentionFamily::online_tiles;
}

bool sums_exactly(const LinearChoice& choice) {
  const LinearKernel* const kernel =
      choice.own != nullptr ? choice.own : find_linear_kernel(choice.kernel);
  return kernel != nullptr && kernel->split.kind == SplitKind::none &&
         std::ranges::all_of(kernel->rules, [](const LinearRule& rule) {
           return rule.order == exact_order && rule.edge_order.empty() && rule.leading_modulus == 0;
         });
}

bool works_by_element(std::string_view activation) {
  const ActivationKernel* const kernel = find_activation_kernel(activation);
  return kernel != nullptr && kernel->group == 0;
}

bool norm_is_exact(std::string_view name) {
  const NormKernel* const kernel = find_norm_kernel(name);
  return kernel != nullptr && kernel->order == exact_order;
}

}  // namespace

bool leaves_rescale_rounding(const Dispatch& dispatch) {
  return dispatch.arithmetic == DispatchArithmetic::kernels &&
         is_tiled(dispatch.attention_prefill) &&
         dispatch.attention_prefill == dispatch.attention_decode &&
         std::ranges::all_of(std::array{dispatch.silu, dispatch.gelu, dispatch.gelu_tanh},
                             works_by_element) &&
         std::ranges::all_of(dispatch.linear, sums_exactly) && norm_is_exact(dispatch.norm) &&
         norm_is_exact(dispatch.norm_plus_one);
}

}  // namespace kvsim
