// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sim/engine/column_kernel.h"
#include "sim/engine/lane_plan.h"
#include "sim/engine/program.h"
#include "sim/parallel.h"
#include "softfloat/arithmetic.h"
#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using engine::ColumnKernelArguments;
using softfloat::Bits;
using softfloat::Format;

/// Threads start at multiples of this many columns, so that only the last one meets part of a
/// block.
constexpr std::int64_t columns_per_share = 64;
constexpr std::int64_t most_threads = 1024;

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// An exact sum of one column on softfloat. Whatever format the factors have, they are floats.
class SoftfloatNode final : public engine::ExactNode {
 public:
  explicit SoftfloatNode(const ColumnsProblem& problem) : problem_(problem) {}

  float sum(const std::int64_t* positions, std::int64_t count, bool from_zero,
            std::int64_t column) const override {
    softfloat::ExactAccumulator sum;
    if (from_zero) sum.add(0.0);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t k = positions[i];
      const float a = problem_.a == nullptr ? 1.0F : problem_.a[k];
      const float b = problem_.b[k * problem_.stride + column];
      sum.add_product(softfloat::binary32, softfloat::from_float(a), softfloat::binary32,
                      softfloat::from_float(b));
    }
    return softfloat::to_float(problem_.accumulator, sum.round(problem_.accumulator).bits);
  }

 private:
  const ColumnsProblem& problem_;
};

std::string format_text(const Format& f) {
  return fmt::format("{} ({} exponent bits, precision {})", softfloat::format_name(f),
                     f.exponent_bits, f.precision);
}

Result<bool> check(const ColumnsProblem& problem, std::size_t out, std::size_t bound,
                   const EngineOptions& options) {
  for (const Format& f : {problem.input, problem.accumulator}) {
    if (!engine::lanes_hold(f)) {
      return usage(
          fmt::format("format {}: the engine takes formats whose numbers are all floats, "
                      "with a sign and a zero",
                      format_text(f)));
    }
  }
  if (problem.terms < 0 || problem.columns < 0) {
    return usage(fmt::format("{} terms × {} columns: both must be 0 or more", problem.terms,
                             problem.columns));
  }
  if (problem.terms > 1 && problem.stride < problem.columns) {
    return usage(
        fmt::format("stride {}: must be at least the {} columns", problem.stride, problem.columns));
  }
  if (out != static_cast<std::size_t>(problem.columns)) {
    return usage(
        fmt::format("{} results for {} columns: one for each is needed", out, problem.columns));
  }
  if (bound != 0 && bound != out) {
    return usage(fmt::format("{} bounds for {} columns: none or one for each is accepted", bound,
                             problem.columns));
  }
  if (options.threads < 1 || options.threads > most_threads) {
    return usage(fmt::format("{} threads: accepted are 1 to {}", options.threads, most_threads));
  }
  if (engine::column_kernel(options.level) == nullptr) {
    return Error{ErrorKind::unavailable, fmt::format("SIMD level '{}' is not available on this CPU",
                                                     simd_level_name(options.level))};
  }
  if (const auto unit = unit_of(problem.order); unit) {
    return usage(
        fmt::format("order {}: sums of columns take no matrix unit", to_string(problem.order)));
  }
  Result<bool> fits = check_formats(problem.order, problem.input, problem.accumulator);
  return fits ? check_length(problem.order, problem.terms) : fits;
}

/// Turns the sums of magnitudes into bounds and canonicalises NaN. The sum of m magnitudes in
/// double is at most a factor (1 + 2^−53)^m too small; m terms of 2^−52 and a few more cover that
/// and the roundings here.
void finish(const engine::LanePlan& plan, std::int64_t roundings, std::span<float> out,
            std::span<double> bound) {
  const double inflation = 1.0 + static_cast<double>(roundings + 8) * 0x1p-52;
  for (std::size_t j = 0; j < bound.size(); ++j) {
    bound[j] = std::isfinite(out[j]) && std::isfinite(bound[j])
                   ? plan.unit_roundoff * bound[j] * inflation
                   : std::numeric_limits<double>::infinity();
  }
  for (float& x : out) {
    if (std::isnan(x)) x = engine::canonical_nan;
  }
}

/// Runs the kernel over columns begin … end − 1.
void run_share(ColumnKernelArguments call, engine::ColumnKernel kernel, std::int64_t begin,
               std::int64_t end) {
  constexpr std::size_t alignment = 64;
  std::vector<std::byte> memory(
      engine::scratch_bytes_per_slot * static_cast<std::size_t>(call.program->slots) + alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  call.scratch = memory.data() + (alignment - address % alignment) % alignment;
  constexpr auto lanes = static_cast<std::int64_t>(engine::most_lanes);
  std::vector<float> rows;
  if (end - begin < lanes) rows.resize(static_cast<std::size_t>(call.terms * lanes));
  call.padded_rows = rows.data();
  call.begin = begin;
  call.end = end;
  kernel(call);
}

}  // namespace

Result<bool> sum_columns(const ColumnsProblem& problem, std::span<float> out,
                         std::span<double> rounding_bound, const EngineOptions& options) {
  const Result<bool> checked = check(problem, out.size(), rounding_bound.size(), options);
  if (!checked) return checked.error();
  if (problem.columns == 0) return true;
  if (problem.terms == 0) {  // +0, and nothing behind the pointers
    std::fill(out.begin(), out.end(), 0.0F);
    std::fill(rounding_bound.begin(), rounding_bound.end(), 0.0);
    return true;
  }

  const engine::LanePlan plan =
      engine::plan_lanes(problem.product, problem.input, problem.accumulator, problem.a == nullptr);
  const engine::Program program = engine::compile_order(problem.order, problem.terms);
  std::vector<engine::LanePlan> round_plans;
  round_plans.reserve(program.formats.size());
  for (const Format& f : program.formats) round_plans.push_back(engine::plan_rounding(f));
  const SoftfloatNode exact_node(problem);
  std::vector<float> ones;
  if (problem.a == nullptr) ones.assign(static_cast<std::size_t>(problem.terms), 1.0F);

  ColumnKernelArguments call;
  call.program = &program;
  call.plan = &plan;
  call.round_plans = round_plans.data();
  call.a = problem.a == nullptr ? ones.data() : problem.a;
  call.b = problem.b;
  call.terms = problem.terms;
  call.stride = problem.stride;
  call.exact_node = &exact_node;
  call.out = out.data();
  call.magnitudes = rounding_bound.empty() ? nullptr : rounding_bound.data();
  const engine::ColumnKernel kernel = engine::column_kernel(options.level);

  const std::int64_t blocks = (problem.columns - 1) / columns_per_share + 1;
  const std::int64_t shares = std::min<std::int64_t>(options.threads, blocks);
  const auto share_begin = [&](std::int64_t share) {
    return std::min(problem.columns, share * blocks / shares * columns_per_share);
  };
  const auto run = [&](std::int64_t share) {
    run_share(call, kernel, share_begin(share), share_begin(share + 1));
  };
  parallel_for(shares, options.threads, run);

  finish(plan, program.roundings, out, rounding_bound);
  return true;
}

Result<bool> round_values(const Format& format, std::span<const float> in, std::span<float> out,
                          SimdLevel level) {
  if (in.size() != out.size()) {
    return usage(
        fmt::format("{} results for {} values: one for each is needed", out.size(), in.size()));
  }
  if (!engine::lanes_hold(format)) {
    return usage(
        fmt::format("format {}: the engine takes formats whose numbers are all floats, with "
                    "a sign and a zero",
                    format_text(format)));
  }
  const engine::RoundKernel kernel = engine::round_kernel(level);
  if (kernel == nullptr) {
    return Error{ErrorKind::unavailable, fmt::format("SIMD level '{}' is not available on this CPU",
                                                     simd_level_name(level))};
  }
  const engine::LanePlan plan = engine::plan_rounding(format);
  kernel({.plan = &plan,
          .in = in.data(),
          .out = out.data(),
          .count = static_cast<std::int64_t>(in.size())});
  for (float& x : out) {
    if (std::isnan(x)) x = engine::canonical_nan;
  }
  return true;
}

}  // namespace kvsim
