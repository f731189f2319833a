// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "sim/attention/families.h"
#include "softfloat/formats.h"

namespace kvsim::attention {
namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 40;
constexpr std::int64_t most_numbers = std::int64_t{1} << 40;  // of q, k or v

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

std::string_view name_of(const softfloat::Format& format) {
  for (const softfloat::NamedFormat& row : softfloat::formats()) {
    if (row.format == format) return row.name;
  }
  return "this format";
}

struct NamedSize {
  std::string_view name;
  std::int64_t value;
};

Result<bool> check_shape(const AttentionShape& shape) {
  for (const NamedSize& size : {NamedSize{"query_heads", shape.query_heads},
                                {"kv_heads", shape.kv_heads},
                                {"query_len", shape.query_len},
                                {"kv_len", shape.kv_len},
                                {"head_dim", shape.head_dim}}) {
    if (size.value < 1 || size.value > largest_size) {
      return usage(fmt::format("{} {}: must be 1 or more", size.name, size.value));
    }
  }
  if (shape.query_heads % shape.kv_heads != 0) {
    return usage(fmt::format("{} query heads: must be a multiple of the {} K/V heads",
                             shape.query_heads, shape.kv_heads));
  }
  for (const auto& [heads, length] :
       {std::pair{shape.query_heads, shape.query_len}, std::pair{shape.kv_heads, shape.kv_len}}) {
    if (heads > most_numbers / length || heads * length > most_numbers / shape.head_dim) {
      return usage(fmt::format("{} heads × {} positions × head_dim {}: too many numbers", heads,
                               length, shape.head_dim));
    }
  }
  return true;
}

Result<bool> check_launch(const AttentionKernel& kernel, const AttentionProblem& problem) {
  const AttentionLaunch& launch = problem.launch;
  for (const NamedSize& size : {NamedSize{"batch", launch.batch},
                                {"cpu_threads", launch.cpu_threads},
                                {"page_size", launch.page_size}}) {
    if (size.value < 1 || size.value > largest_size) {
      return usage(fmt::format("{} {}: must be 1 or more", size.name, size.value));
    }
  }
  for (const NamedSize& size : {NamedSize{"multiprocessors", launch.multiprocessors},
                                {"splits", launch.splits},
                                {"split_size", launch.split_size},
                                {"longest_kv_len", launch.longest_kv_len}}) {
    if (size.value < 0 || size.value > largest_size) {
      return usage(fmt::format("{} {}: must be 0 or more", size.name, size.value));
    }
  }
  if (launch.longest_kv_len != 0 && launch.longest_kv_len < problem.shape.kv_len) {
    return usage(fmt::format("longest_kv_len {}: must be 0 or at least kv_len, {}",
                             launch.longest_kv_len, problem.shape.kv_len));
  }
  if (launch.splits > 0 && launch.split_size > 0) {
    return usage("splits and split_size: one of them at most");
  }
  const bool splits = kernel.tiles != nullptr && kernel.tiles->split.policy != SplitPolicy::never;
  if (!splits && (launch.splits > 1 || launch.split_size > 0)) {
    return usage(fmt::format("kernel {}: does not split the keys", kernel.name));
  }
  return true;
}

Result<bool> check_mask(const AttentionMask& mask) {
  if (mask.window < 0) {
    return usage(fmt::format("window {}: must be 0 or more", mask.window));
  }
  if (!(mask.soft_cap >= 0) || std::isinf(mask.soft_cap)) {
    return usage(fmt::format("soft cap {}: must be finite and 0 or more", mask.soft_cap));
  }
  return true;
}

Result<bool> check_family(const AttentionKernel& kernel, const AttentionProblem& problem) {
  switch (kernel.family) {
    case AttentionFamily::online_tiles:
      return check_online_tiles(kernel, problem);
    case AttentionFamily::paged:
      return check_paged(kernel, problem);
    case AttentionFamily::llama_cpu:
      return check_llama_cpu(kernel, problem);
    case AttentionFamily::eager:
    case AttentionFamily::torch_cpu:
      break;
  }
  return true;
}

const StorageSums* find_storage(const AttentionKernel& kernel, const softfloat::Format& storage) {
  for (const StorageSums& sums : kernel.storages) {
    if (sums.storage == storage) return &sums;
  }
  return nullptr;
}

}  // namespace

Result<const StorageSums*> check_problem(const AttentionKernel& kernel,
                                         const AttentionProblem& problem) {
  const StorageSums* const sums = find_storage(kernel, problem.storage);
  if (sums == nullptr) {
    std::string accepted;
    for (const StorageSums& row : kernel.storages) {
      if (!accepted.empty()) accepted += ", ";
      accepted += name_of(row.storage);
    }
    return usage(fmt::format("kernel {} with {} storage: accepted are {}", kernel.name,
                             name_of(problem.storage), accepted));
  }
  if (std::isnan(problem.scale) || std::isinf(problem.scale) || problem.scale < 0) {
    return usage(fmt::format("scale {}: must be finite and 0 or more", problem.scale));
  }
  Result<bool> checked = check_shape(problem.shape);
  if (checked) checked = check_mask(problem.mask);
  if (checked) checked = check_launch(kernel, problem);
  if (checked) checked = check_family(kernel, problem);
  if (!checked) return checked.error();
  return sums;
}

}  // namespace kvsim::attention
