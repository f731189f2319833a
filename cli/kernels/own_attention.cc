// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/kernels/own_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "gpu/attention_attributes.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// What decides how a kernel adds: sizes, storage, mask, scale and launch.
std::string layer_text(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  std::string text = fmt::format("heads {}, K/V heads {}, queries {}, keys {}, head_dim {}, {}, {}",
                                 shape.query_heads, shape.kv_heads, shape.query_len, shape.kv_len,
                                 shape.head_dim, softfloat::format_name(problem.storage),
                                 problem.mask.causal ? "causal" : "no mask");
  if (problem.mask.window > 0) text += fmt::format(", window {}", problem.mask.window);
  if (problem.mask.soft_cap > 0) text += fmt::format(", soft cap {}", problem.mask.soft_cap);
  if (problem.scale > 0) text += fmt::format(", scale {}", problem.scale);
  if (problem.launch.batch > 1) text += fmt::format(", {} sequences", problem.launch.batch);
  if (problem.launch.splits > 0) text += fmt::format(", splits {}", problem.launch.splits);
  if (problem.launch.split_size > 0) {
    text += fmt::format(", split-size {}", problem.launch.split_size);
  }
  return text;
}

/// A mask that hides no key from one query is none.
AttentionProblem normal(AttentionProblem problem) {
  if (problem.shape.query_len == 1) problem.mask.causal = false;
  return problem;
}

/// The layer at which a row was revealed.
Result<AttentionProblem> revealed_layer(const OwnKernel& kernel, const OwnAttention& layer) {
  AttentionProblem problem;
  problem.shape = layer.shape;
  problem.storage = kernel.storage;
  const auto set = gpu::set_attention_attributes(layer.attributes, problem);
  if (!set) {
    return usage(fmt::format("--kernel {}: {}", kernel.name, printable(set.error().message, 200)));
  }
  return normal(problem);
}

}  // namespace

Result<AttentionTable> AttentionTable::make(std::span<const std::string> names) {
  AttentionTable table;
  table.kernels_.assign(attention_kernels().begin(), attention_kernels().end());
  const bool known = std::ranges::all_of(
      names, [](const std::string& name) { return find_attention_kernel(name) != nullptr; });
  if (known) return table;
  Result<std::vector<OwnKernel>> own = read_own_kernels(own_kernels_path());
  if (!own) return own.error();
  for (const OwnKernel& kernel : *own) {
    if (kernel.attention || std::ranges::find(names, kernel.name) == names.end()) continue;
    return Error{ErrorKind::usage, fmt::format("--kernel {}: revealed of {}; accepted: sdpa",
                                               kernel.name, printable(kernel.operation))};
  }
  table.own_ = std::move(*own);
  std::erase_if(table.own_, [](const OwnKernel& kernel) { return !kernel.attention; });
  table.layers_.reserve(table.own_.size());
  for (const OwnKernel& kernel : table.own_) {
    const AttentionKernel* const row =
        kernel.attention ? find_attention_kernel(kernel.attention->kernel) : nullptr;
    if (row == nullptr || !kernel.attention) continue;
    const auto layer = revealed_layer(kernel, *kernel.attention);
    if (!layer) return layer.error();
    table.layers_.push_back(*layer);
    AttentionKernel& added = table.kernels_.emplace_back(*row);
    added.name = kernel.name;
    added.device = kernel.device;
    added.source = kernel.key;
    added.date = kernel.date;
    added.evidence = softfloat::Evidence::measured;
  }
  return table;
}

Result<bool> AttentionTable::check_layer(const AttentionKernel& kernel,
                                         const AttentionProblem& problem) const {
  const auto own = std::ranges::find(own_, kernel.name, &OwnKernel::name);
  if (own == own_.end()) return true;
  // Equal texts are equal layers: numbers are written so that they read back as they are.
  const std::string given = layer_text(normal(problem));
  const std::string revealed = layer_text(layers_[static_cast<std::size_t>(own - own_.begin())]);
  if (given == revealed) return true;
  return usage(fmt::format("{}; accepted: what it was revealed at, {}", given, revealed));
}

}  // namespace kvsim
