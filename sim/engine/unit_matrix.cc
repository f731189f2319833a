// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/engine/column_kernel.h"
#include "sim/engine/lane_plan.h"
#include "sim/engine/matrix.h"
#include "sim/engine/unit_kernel.h"
#include "sim/engine/unit_plan.h"
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
    return std::isnan(value) ? engine::canonical_nan : value;
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  const UnitProblem& problem_;
  std::vector<Bits> a_;
  std::vector<Bits> b_;
};

constexpr std::int64_t rows_per_tile = 64;

/// A share of the outputs in lanes.
class LaneProduct {
 public:
  LaneProduct(const UnitProblem& problem, const engine::UnitPlan& plan,
              const engine::UnitKernel& kernel, float* out, std::int64_t out_stride)
      : problem_(problem), plan_(plan), kernel_(kernel), out_(out), out_stride_(out_stride) {
    constexpr std::int64_t unit = 16;
    tile_.a.stride = (engine::padded_terms(plan, problem.terms) + unit - 1) / unit * unit;
  }

  /// Rows first_row … last_row − 1 of columns first_column … last_column − 1.
  void run(std::int64_t first_row, std::int64_t last_row, std::int64_t first_column,
           std::int64_t last_column) {
    pack(first_row, last_row);
    for (std::int64_t j = first_column; j < last_column; j += kernel_.panel_columns) {
      run_tile(first_row, j, std::min(kernel_.panel_columns, last_column - j));
    }
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  void pack(std::int64_t first, std::int64_t last) {
    tile_.rows = last - first;
    values_.resize(size(tile_.rows * tile_.a.stride));
    codes_.resize(values_.size());
    flags_.resize(size(tile_.rows));
    sums_.resize(size(tile_.rows * kernel_.panel_columns));
    if (plan_.addend_last) addends_.resize(sums_.size());
    tile_.a.values = values_.data();
    tile_.a.codes = codes_.data();
    tile_.a.flags = flags_.data();
    kernel_.pack_rows({.plan = &plan_,
                       .a = problem_.a + first * problem_.a_stride,
                       .a_stride = problem_.a_stride,
                       .rows = tile_.rows,
                       .terms = problem_.terms,
                       .packed = tile_.a});
  }

  void run_tile(std::int64_t i, std::int64_t j, std::int64_t columns) {
    tile_.plan = &plan_;
    tile_.terms = problem_.terms;
    tile_.b = problem_.b + (problem_.b_transposed ? j * problem_.b_stride : j);
    tile_.b_stride = problem_.b_stride;
    tile_.b_transposed = problem_.b_transposed;
    tile_.columns = columns;
    tile_.read_next = next_share(j, columns);
    tile_.sums = sums_.data();
    tile_.addends = addends_.data();
    const bool odd_addends = load_addends(i, j, columns);
    const bool odd_operands = kernel_.run_tile(tile_);
    if (odd_addends || odd_operands) repair(i, j, columns);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      std::copy_n(row(r), columns, out_ + (i + r) * out_stride_ + j);
    }
  }

  /// The part of what is read next that the panel at column j fetches; where the caller does not
  /// say, the next panel, if its columns lie one behind the other.
  [[nodiscard]] std::span<const std::byte> next_share(std::int64_t j, std::int64_t columns) const {
    constexpr std::int64_t few_rows = 16;
    if (problem_.rows > few_rows) return {};
    if (problem_.read_next.empty()) {
      const std::int64_t next = j + columns;
      if (!problem_.b_transposed || problem_.b_stride != problem_.terms) return {};
      const std::int64_t left = std::min(columns, problem_.columns - next);
      const NumberPointer from = problem_.b + next * problem_.b_stride;
      return {static_cast<const std::byte*>(from.data()),
              size(left * problem_.b_stride * from.bytes())};
    }
    const auto at = [&](std::int64_t column) {
      return problem_.read_next.size() * size(column) / size(problem_.columns);
    };
    return problem_.read_next.subspan(at(j), at(j + columns) - at(j));
  }

  float* row(std::int64_t r) { return sums_.data() + r * kernel_.panel_columns; }

  /// True where an addend is not for lanes; 0 stands in for it.
  bool load_addends(std::int64_t i, std::int64_t j, std::int64_t columns) {
    if (problem_.c == nullptr || columns < kernel_.panel_columns) {
      std::fill(sums_.begin(), sums_.end(), 0.0F);
    }
    if (problem_.c == nullptr) return false;
    return kernel_.load_addends({.plan = &plan_,
                                 .c = problem_.c + i * problem_.c_stride + j,
                                 .c_stride = problem_.c_stride,
                                 .rows = tile_.rows,
                                 .columns = columns,
                                 .sums = sums_.data()});
  }

  /// Computes on softfloat what lanes did not.
  void repair(std::int64_t i, std::int64_t j, std::int64_t columns) {
    const engine::LaneAddends addends(plan_);
    SoftfloatProduct product(problem_);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      const float* const c =
          problem_.c == nullptr ? nullptr : problem_.c + (i + r) * problem_.c_stride + j;
      for (std::int64_t x = 0; x < columns; ++x) {
        const bool odd_addend = c != nullptr && !addends.take(c[x]);
        if (std::isnan(row(r)[x]) || odd_addend) row(r)[x] = product.element(i + r, j + x);
      }
    }
  }

  const UnitProblem& problem_;
  const engine::UnitPlan& plan_;
  const engine::UnitKernel& kernel_;
  float* out_;
  std::int64_t out_stride_;
  engine::UnitTile tile_;
  std::vector<float> values_;
  std::vector<std::uint8_t> codes_;
  std::vector<std::uint8_t> flags_;
  std::vector<float> sums_;
  std::vector<float> addends_;
};

void run_in_lanes(const UnitProblem& problem, const engine::UnitPlan& plan,
                  const engine::UnitKernel& kernel, float* out, std::int64_t out_stride,
                  int threads) {
  const std::int64_t row_blocks = (problem.rows + rows_per_tile - 1) / rows_per_tile;
  const std::int64_t panels = (problem.columns + kernel.panel_columns - 1) / kernel.panel_columns;
  // Every share packs its rows anew: no more shares than threads can use.
  const std::int64_t shares =
      std::clamp<std::int64_t>((threads + row_blocks - 1) / row_blocks, 1, panels);
  parallel_for(row_blocks * shares, threads, [&](std::int64_t task) {
    const std::int64_t block = task / shares;
    const std::int64_t share = task % shares;
    const auto column = [&](std::int64_t s) {
      return std::min(problem.columns, s * panels / shares * kernel.panel_columns);
    };
    LaneProduct(problem, plan, kernel, out, out_stride)
        .run(block * rows_per_tile, std::min(problem.rows, (block + 1) * rows_per_tile),
             column(share), column(share + 1));
  });
}

}  // namespace

Result<bool> multiply_on_unit(const UnitProblem& problem, float* out, std::int64_t out_stride,
                              const EngineOptions& options) {
  const Result<bool> checked = check(problem, out_stride, options);
  if (!checked) return checked.error();
  if (problem.rows == 0 || problem.columns == 0) return true;
  const engine::UnitPlan plan = engine::plan_unit(*problem.unit);
  const engine::UnitKernel kernel = engine::unit_kernel(options.level);
  if (plan.path != engine::UnitPath::softfloat && kernel.run_tile != nullptr && problem.terms > 0 &&
      problem.terms <= engine::most_lane_terms) {
    run_in_lanes(problem, plan, kernel, out, out_stride, options.threads);
    return true;
  }
  parallel_for(problem.rows, options.threads, [&](std::int64_t i) {
    SoftfloatProduct product(problem);
    for (std::int64_t j = 0; j < problem.columns; ++j) {
      out[i * out_stride + j] = product.element(i, j);
    }
  });
  return true;
}

}  // namespace kvsim
