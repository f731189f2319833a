// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <string>
#include <utility>

#include "cli/kernels/entry.h"
#include "cli/printable.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

constexpr std::size_t longest = 400;  // characters of a value

void add_sum(const OwnKernel& kernel, KernelParameters& parameters) {
  parameters.emplace_back("revealed", fmt::format("{} of {}, M = {}, N = {}, K = {}",
                                                  kernel.operation, printable(kernel.backend),
                                                  kernel.rows, kernel.outputs, kernel.terms));
  parameters.emplace_back("order", printable(kernel.order, longest));
  const std::string products = product_text(kernel.order, kernel.product);
  if (!products.empty()) parameters.emplace_back("products", products.substr(9));
  parameters.emplace_back("formats", fmt::format("inputs {}, sums {}, results {}",
                                                 softfloat::format_name(kernel.storage),
                                                 softfloat::format_name(kernel.accumulator),
                                                 softfloat::format_name(kernel.output)));
}

void add_attention(const OwnKernel& kernel, const OwnAttention& layer,
                   KernelParameters& parameters) {
  const AttentionShape& shape = layer.shape;
  std::string revealed =
      fmt::format("{} of {}, heads {}, K/V heads {}, queries {}, keys {}, head_dim {}",
                  kernel.operation, printable(kernel.backend), shape.query_heads, shape.kv_heads,
                  shape.query_len, shape.kv_len, shape.head_dim);
  for (const auto& [name, value] : layer.attributes) {
    revealed += printable(fmt::format(", {}={}", name, value), longest);
  }
  parameters.emplace_back("revealed", std::move(revealed));
  parameters.emplace_back("kernel", layer.kernel);
  parameters.emplace_back("keys", printable(layer.walk, longest));
  parameters.emplace_back(
      "formats", fmt::format("inputs {}, results {}", softfloat::format_name(kernel.storage),
                             softfloat::format_name(kernel.output)));
}

}  // namespace

std::vector<KernelEntry> own_entries(std::span<const OwnKernel> kernels) {
  std::vector<KernelEntry> entries;
  entries.reserve(kernels.size());
  for (const OwnKernel& kernel : kernels) {
    KernelEntry entry;
    entry.name = kernel.name;
    entry.operator_name = kernel.operation + " (yours)";
    entry.device = kernel.device;
    entry.source = kernel.key;
    entry.date = kernel.date;
    entry.evidence = softfloat::Evidence::measured;
    KernelParameters& parameters = entry.parameters;
    if (const auto& layer = kernel.attention) {
      add_attention(kernel, *layer, parameters);
    } else {
      add_sum(kernel, parameters);
    }
    parameters.emplace_back("replay", fmt::format("{} equal", kernel.outputs_checked));
    parameters.emplace_back("tree sha256", printable(kernel.tree_sha256, longest));
    for (std::size_t i = 0; i < kernel.exceptions.size(); ++i) {
      parameters.emplace_back(fmt::format("exception {}", i + 1),
                              printable(kernel.exceptions[i], longest));
    }
    for (const auto& [name, value] : kernel.fingerprint) {
      parameters.emplace_back(printable(name), printable(value, longest));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace kvsim
