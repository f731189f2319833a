// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/engine/column_kernel.h"
#include "sim/engine/lane_plan.h"
#include "sim/engine/matrix.h"
#include "sim/parallel.h"
#include "sim/units/dot.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

constexpr std::int64_t most_threads = 1024;
constexpr float canonical_nan = std::bit_cast<float>(0x7fc00000U);

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> check(const UnitProblem& problem, std::int64_t out_stride,
                   const EngineOptions& options) {
  if (problem.unit == nullptr) return usage("matrix unit: none given");
  const MatrixUnit& unit = *problem.unit;
  if (!engine::lanes_hold(unit.operand) || !engine::lanes_hold(unit.output)) {
    return usage(fmt::format("matrix unit {}: the engine takes units whose numbers are all floats",
                             unit.name));
  }
  if (unit.scale_block != 0) {
    return usage(
        fmt::format("matrix unit {}: the engine takes units without block scales", unit.name));
  }
  if (problem.rows < 0 || problem.terms < 0 || problem.columns < 0) {
    return usage(fmt::format("{} rows × {} terms × {} columns: all must be 0 or more", problem.rows,
                             problem.terms, problem.columns));
  }
  const auto check_stride = [](const char* name, std::int64_t stride, std::int64_t count,
                               std::int64_t width) -> Result<bool> {
    if (count > 1 && stride < width) {
      return usage(fmt::format("stride {} of {}: must be at least {}", stride, name, width));
    }
    return true;
  };
  const std::int64_t b_rows = problem.b_transposed ? problem.columns : problem.terms;
  const std::int64_t b_width = problem.b_transposed ? problem.terms : problem.columns;
  for (const Result<bool>& checked :
       {check_stride("a", problem.a_stride, problem.rows, problem.terms),
        check_stride("b", problem.b_stride, b_rows, b_width),
        check_stride("c", problem.c == nullptr ? problem.columns : problem.c_stride, problem.rows,
                     problem.columns),
        check_stride("the result", out_stride, problem.rows, problem.columns)}) {
    if (!checked) return checked.error();
  }
  if (options.threads < 1 || options.threads > most_threads) {
    return usage(fmt::format("{} threads: accepted are 1 to {}", options.threads, most_threads));
  }
  if (engine::column_kernel(options.level) == nullptr) {
    return Error{ErrorKind::unavailable, fmt::format("SIMD level '{}' is not available on this CPU",
                                                     simd_level_name(options.level))};
  }
  return true;
}

/// The code of a float that is a number of `format`.
Bits code_of(const Format& format, float x) {
  return softfloat::convert(format, softfloat::binary32, softfloat::from_float(x)).bits;
}

/// Elements one by one on softfloat: what every faster path must repeat.
class SoftfloatProduct {
 public:
  explicit SoftfloatProduct(const UnitProblem& problem)
      : problem_(problem), a_(size(problem.terms)), b_(size(problem.terms)) {}

  float element(std::int64_t i, std::int64_t j) {
    const MatrixUnit& unit = *problem_.unit;
    for (std::int64_t k = 0; k < problem_.terms; ++k) {
      const std::int64_t b_at =
          problem_.b_transposed ? j * problem_.b_stride + k : k * problem_.b_stride + j;
      a_[size(k)] = code_of(unit.operand, problem_.a[i * problem_.a_stride + k]);
      b_[size(k)] = code_of(unit.operand, problem_.b[b_at]);
    }
    const float c = problem_.c == nullptr ? 0.0F : problem_.c[i * problem_.c_stride + j];
    const Bits d = unit_dot(unit, {.a = a_, .b = b_, .c = code_of(unit.output, c)});
    const float value = softfloat::to_float(unit.output, d);
    return std::isnan(value) ? canonical_nan : value;
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  const UnitProblem& problem_;
  std::vector<Bits> a_;
  std::vector<Bits> b_;
};

}  // namespace

Result<bool> multiply_on_unit(const UnitProblem& problem, float* out, std::int64_t out_stride,
                              const EngineOptions& options) {
  const Result<bool> checked = check(problem, out_stride, options);
  if (!checked) return checked.error();
  parallel_for(problem.rows, options.threads, [&](std::int64_t i) {
    SoftfloatProduct product(problem);
    for (std::int64_t j = 0; j < problem.columns; ++j) {
      out[i * out_stride + j] = product.element(i, j);
    }
  });
  return true;
}

}  // namespace kvsim
