// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/attention/run.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "sim/attention/families.h"
#include "sim/engine/column_kernel.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using attention::Run;

constexpr std::int64_t largest_size = std::int64_t{1} << 40;
constexpr std::int64_t most_numbers = std::int64_t{1} << 40;  // of q, k or v
constexpr int most_threads = 1024;

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
      return attention::check_online_tiles(kernel, problem);
    case AttentionFamily::paged:
      return attention::check_paged(kernel, problem);
    case AttentionFamily::llama_cpu:
      return attention::check_llama_cpu(kernel, problem);
    case AttentionFamily::eager:
    case AttentionFamily::torch_cpu:
      break;
  }
  return true;
}

Result<bool> check(const AttentionKernel& kernel, const AttentionProblem& problem,
                   const AttentionOptions& options) {
  if (problem.q == nullptr || problem.k == nullptr || problem.v == nullptr) {
    return usage("q, k and v: all three are needed");
  }
  if (std::isnan(problem.scale) || std::isinf(problem.scale) || problem.scale < 0) {
    return usage(fmt::format("scale {}: must be finite and 0 or more", problem.scale));
  }
  if (options.engine.threads < 1 || options.engine.threads > most_threads) {
    return usage(
        fmt::format("{} threads: accepted are 1 to {}", options.engine.threads, most_threads));
  }
  if (engine::column_kernel(options.engine.level) == nullptr) {
    return Error{ErrorKind::unavailable, fmt::format("SIMD level '{}' is not available on this CPU",
                                                     simd_level_name(options.engine.level))};
  }
  Result<bool> checked = check_shape(problem.shape);
  if (checked && options.exp) checked = check_exp_options(ExpModel::ex2_approx, *options.exp);
  if (checked) checked = check_mask(problem.mask);
  if (checked) checked = check_launch(kernel, problem);
  if (checked) checked = check_family(kernel, problem);
  return checked;
}

const StorageSums* find_storage(const AttentionKernel& kernel, const softfloat::Format& storage) {
  for (const StorageSums& sums : kernel.storages) {
    if (sums.storage == storage) return &sums;
  }
  return nullptr;
}

Result<bool> run_family(const Run& run, AttentionResult& result) {
  switch (run.kernel.family) {
    case AttentionFamily::eager:
      return attention::run_eager(run, result);
    case AttentionFamily::online_tiles:
      return attention::run_online_tiles(run, result);
    case AttentionFamily::paged:
      return attention::run_paged(run, result);
    case AttentionFamily::torch_cpu:
      return attention::run_torch_cpu(run, result);
    case AttentionFamily::llama_cpu:
      break;
  }
  return attention::run_llama_cpu(run, result);
}

}  // namespace

Result<AttentionResult> run_attention(const AttentionKernel& kernel,
                                      const AttentionProblem& problem,
                                      const AttentionOptions& options) {
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
  const Result<bool> checked = check(kernel, problem, options);
  if (!checked) return checked.error();

  const AttentionShape& shape = problem.shape;
  const float scale =
      problem.scale > 0 ? problem.scale
                        : static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  AttentionResult result;
  const std::int64_t rows = shape.query_heads * shape.query_len;
  result.out.assign(attention::index(rows * shape.head_dim), 0.0F);
  result.lse.assign(attention::index(rows), -std::numeric_limits<float>::infinity());
  const Run run{kernel, problem, options, *sums, scale};
  const Result<bool> done = run_family(run, result);
  if (!done) return done.error();
  for (float& x : result.out) {
    if (std::isnan(x)) x = attention::canonical_nan;
  }
  for (float& x : result.lse) {
    if (std::isnan(x)) x = attention::canonical_nan;
  }
  return result;
}

}  // namespace kvsim
