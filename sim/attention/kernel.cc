// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/kernel.h"

#include <algorithm>
#include <vector>

#include "sim/attention/rows.h"

namespace kvsim {

std::span<const AttentionKernel> attention_kernels() {
  static const std::vector<AttentionKernel> all = [] {
    std::vector<AttentionKernel> kernels;
    for (const std::span<const AttentionKernel> rows :
         {attention::eager_rows(), attention::flash_attention_rows(), attention::flashinfer_rows(),
          attention::triton_rows(), attention::paged_rows(), attention::torch_cpu_rows(),
          attention::llama_rows()}) {
      kernels.insert(kernels.end(), rows.begin(), rows.end());
    }
    return kernels;
  }();
  return all;
}

const AttentionKernel* find_attention_kernel(std::string_view name) {
  const std::span<const AttentionKernel> all = attention_kernels();
  const auto* const found = std::ranges::find(all, name, &AttentionKernel::name).base();
  return found == all.data() + all.size() ? nullptr : found;
}

const StorageSums* find_storage(const AttentionKernel& kernel, const softfloat::Format& storage) {
  for (const StorageSums& sums : kernel.storages) {
    if (sums.storage == storage) return &sums;
  }
  return nullptr;
}

softfloat::Format output_format(const AttentionKernel& kernel, const softfloat::Format& storage) {
  const bool in_binary32 = kernel.family == AttentionFamily::llama_cpu ||
                           (kernel.tiles != nullptr && kernel.tiles->output_in_binary32);
  return in_binary32 ? softfloat::binary32 : storage;
}

std::string_view to_string(AttentionFamily family) {
  switch (family) {
    case AttentionFamily::eager:
      return "eager";
    case AttentionFamily::online_tiles:
      return "online tiles";
    case AttentionFamily::paged:
      return "paged";
    case AttentionFamily::torch_cpu:
      return "torch CPU";
    case AttentionFamily::llama_cpu:
      break;
  }
  return "llama.cpp CPU";
}

}  // namespace kvsim
