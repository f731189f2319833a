// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/kernel_choice.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "softfloat/suggest.h"

namespace kvsim {
namespace {

/// The error for an attention kernel that is not there.
Error unknown_kernel(std::string_view option, std::string_view name) {
  std::vector<std::string_view> names{"decode", "prefill"};
  for (const AttentionKernel& kernel : attention_kernels()) names.push_back(kernel.name);
  const std::string_view near = softfloat::nearest(name, names);
  const std::string hint = near.empty() ? std::string() : fmt::format("; did you mean {}?", near);
  return Error{ErrorKind::usage,
               fmt::format("{} is '{}'; accepted: decode, prefill and the attention kernels of "
                           "kvsim kernels{}",
                           option, name.substr(0, 64), hint)};
}

/// The kernel that an option names, or the one that the dispatch has for it.
Result<const AttentionKernel*> named(const Dispatch& dispatch, std::string_view option,
                                     std::string_view name) {
  std::string_view kernel_name = name;
  if (kernel_name == "decode") kernel_name = dispatch.attention_decode;
  if (kernel_name == "prefill") kernel_name = dispatch.attention_prefill;
  const AttentionKernel* kernel = find_attention_kernel(kernel_name);
  if (kernel == nullptr) return unknown_kernel(option, name);
  return kernel;
}

}  // namespace

Result<KernelChoice> choose_kernels(const Dispatch& dispatch, std::string_view on,
                                    std::string_view off) {
  if (dispatch.arithmetic != DispatchArithmetic::kernels) {
    return Error{ErrorKind::usage, fmt::format("device {} has no kernels; accepted: the other "
                                               "dispatches",
                                               dispatch.name)};
  }
  const auto decode = named(dispatch, "--on", on);
  if (!decode) return decode.error();
  const auto prefill = named(dispatch, "--off", off);
  if (!prefill) return prefill.error();
  KernelChoice choice;
  choice.multiprocessors = dispatch.multiprocessors;
  choice.attention_splits = dispatch.decode_splits;
  choice.attention = [one = *decode,
                      more = *prefill](std::int64_t queries) -> const AttentionKernel& {
    return queries == 1 ? *one : *more;
  };
  // Every number of rows has a kernel: dispatches are checked by their test.
  choice.linear = [&dispatch](std::int64_t rows) -> const LinearKernel& {
    return *linear_kernel_for(dispatch, rows).value();
  };
  return choice;
}

}  // namespace kvsim
