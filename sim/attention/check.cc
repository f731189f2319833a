// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/attention/families.h"
#include "softfloat/formats.h"

namespace kvsim::attention {
namespace {

// So large that no real size reaches them, and so small that no product of sizes overflows.
constexpr std::int64_t largest_size = std::int64_t{1} << 40;
constexpr std::int64_t most_numbers = std::int64_t{1} << 40;  // of q, k or v
constexpr std::int64_t most_sequences = std::int64_t{1} << 20;
constexpr std::int64_t most_multiprocessors = std::int64_t{1} << 16;

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
  std::int64_t most = largest_size;
};

/// Whether every size is at least `least` and at most its own limit.
Result<bool> check_sizes(std::span<const NamedSize> sizes, std::int64_t least) {
  for (const NamedSize& size : sizes) {
    if (size.value < least) {
      return usage(fmt::format("{} {}: must be {} or more", size.name, size.value, least));
    }
    if (size.value > size.most) {
      return usage(fmt::format("{} {}: must be {} or less", size.name, size.value, size.most));
    }
  }
  return true;
}

Result<bool> check_shape(const AttentionShape& shape) {
  const std::array sizes{NamedSize{"query_heads", shape.query_heads},
                         NamedSize{"kv_heads", shape.kv_heads},
                         NamedSize{"query_len", shape.query_len}, NamedSize{"kv_len", shape.kv_len},
                         NamedSize{"head_dim", shape.head_dim}};
  Result<bool> checked = check_sizes(sizes, 1);
  if (!checked) return checked;
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
  if (shape.group() > most_working_numbers / shape.kv_len) {
    return usage(
        fmt::format("{} keys for {} query heads of one K/V head: at most {} scores are "
                    "accepted",
                    shape.kv_len, shape.group(), most_working_numbers));
  }
  return true;
}

Result<bool> check_first_query(const AttentionKernel& kernel, const AttentionProblem& problem) {
  if (problem.first_query == 0) return true;
  if (kernel.family == AttentionFamily::paged || problem.first_query < 0 ||
      problem.first_query >= problem.shape.query_len) {
    return usage(fmt::format("kernel {}: query {} of {} as the first one; accepted: {}",
                             kernel.name, problem.first_query, problem.shape.query_len,
                             kernel.family == AttentionFamily::paged ? "0" : "one of them"));
  }
  return true;
}

Result<bool> check_launch(const AttentionKernel& kernel, const AttentionProblem& problem) {
  const AttentionLaunch& launch = problem.launch;
  const std::array positive{NamedSize{"batch", launch.batch, most_sequences},
                            NamedSize{"cpu_threads", launch.cpu_threads},
                            NamedSize{"page_size", launch.page_size}};
  const std::array not_negative{
      NamedSize{"multiprocessors", launch.multiprocessors, most_multiprocessors},
      NamedSize{"splits", launch.splits}, NamedSize{"split_size", launch.split_size},
      NamedSize{"longest_kv_len", launch.longest_kv_len}};
  Result<bool> checked = check_sizes(positive, 1);
  if (checked) checked = check_sizes(not_negative, 0);
  if (!checked) return checked;
  if (launch.kv_lens.size() > static_cast<std::size_t>(launch.batch)) {
    return usage(fmt::format("{} kv_lens in a launch of {} sequences: at most one for each",
                             launch.kv_lens.size(), launch.batch));
  }
  for (const std::int64_t length : launch.kv_lens) {
    checked = check_sizes(std::array{NamedSize{"a length of kv_lens", length}}, 1);
    if (!checked) return checked;
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

Result<bool> check_mask(const AttentionKernel& kernel, const AttentionMask& mask) {
  Result<bool> checked = check_sizes(
      std::array{NamedSize{"window", mask.window}, NamedSize{"first_key", mask.first_key}}, 0);
  if (!checked) return checked;
  if (mask.first_key > 0 && !masks_padding(kernel)) {
    return usage(fmt::format("kernel {} with {} masked keys before the first: it has no such mask",
                             kernel.name, mask.first_key));
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
  if (checked && problem.kv_head_stride != 0 &&
      problem.kv_head_stride < problem.shape.kv_len * problem.shape.head_dim) {
    return usage(fmt::format("kv_head_stride {}: must be 0 or at least kv_len × head_dim, {}",
                             problem.kv_head_stride,
                             problem.shape.kv_len * problem.shape.head_dim));
  }
  if (checked) checked = check_mask(kernel, problem.mask);
  if (checked) checked = check_first_query(kernel, problem);
  if (checked) checked = check_launch(kernel, problem);
  if (checked) checked = check_family(kernel, problem);
  if (!checked) return checked.error();
  return sums;
}

}  // namespace kvsim::attention
