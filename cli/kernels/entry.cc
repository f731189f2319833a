// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/entry.h"

#include <array>

namespace kvsim {
namespace {

struct KernelTable {
  std::string_view operator_name;
  std::vector<KernelEntry> (*entries)();
};

constexpr std::array tables{
    KernelTable{"attention", attention_entries}, KernelTable{"linear", linear_entries},
    KernelTable{"norm", norm_entries},           KernelTable{"softmax", softmax_entries},
    KernelTable{"rope", rope_entries},           KernelTable{"activation", activation_entries},
    KernelTable{"residual", residual_entries},   KernelTable{"exp", exp_entries},
    KernelTable{"dispatch", dispatch_entries},   KernelTable{"unit", unit_entries},
};

}  // namespace

std::span<const std::string_view> kernel_operators() {
  static constexpr auto names = [] {
    std::array<std::string_view, tables.size()> out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = tables[i].operator_name;
    return out;
  }();
  return names;
}

std::vector<KernelEntry> kernel_entries() {
  std::vector<KernelEntry> all;
  for (const KernelTable& table : tables) {
    for (KernelEntry& entry : table.entries()) {
      entry.operator_name = table.operator_name;
      all.push_back(std::move(entry));
    }
  }
  return all;
}

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

std::string product_text(std::string_view order, Product product) {
  if (order.empty() || order.find("mma(") != std::string_view::npos) return {};
  switch (product) {
    case Product::fused:
      return "products fused";
    case Product::exact:
      return "products exact";
    case Product::rounded:
      break;
  }
  return "products rounded";
}

}  // namespace kvsim
