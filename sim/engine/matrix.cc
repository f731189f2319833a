// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/dot_kernel.h"
#include "sim/engine/lane_plan.h"
#include "sim/engine/panel.h"
#include "sim/engine/program.h"
#include "sim/engine/row_kernel.h"
#include "sim/engine/unit_program.h"
#include "sim/parallel.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> check(const MatrixProblem& problem, std::int64_t out_stride, bool on_unit_alone) {
  if (problem.rows < 0 || problem.terms < 0 || problem.columns < 0) {
    return usage(fmt::format("{} rows × {} terms × {} columns: all must be 0 or more", problem.rows,
                             problem.terms, problem.columns));
  }
  if (problem.rows > 1 && (problem.a_stride < problem.terms || out_stride < problem.columns)) {
    return usage(fmt::format("strides {} of a and {} of the result: must be at least {} and {}",
                             problem.a_stride, out_stride, problem.terms, problem.columns));
  }
  const std::int64_t b_rows = problem.b_transposed ? problem.columns : problem.terms;
  const std::int64_t b_width = problem.b_transposed ? problem.terms : problem.columns;
  if (b_rows > 1 && problem.b_stride < b_width) {
    return usage(fmt::format("stride {} of b: must be at least the {} {}", problem.b_stride,
                             b_width, problem.b_transposed ? "terms" : "columns"));
  }
  if (problem.c != nullptr && !on_unit_alone) {
    return usage("an addend: accepted only where the order is one matrix unit");
  }
  return true;
}

/// Whether terms are also added one by one, beside the unit: a scalar tail of lanes.
bool has_single_terms(const engine::Program& program) {
  return std::ranges::any_of(program.steps, [](const engine::Step& step) {
    return step.kind == engine::StepKind::start || step.kind == engine::StepKind::terms;
  });
}

/// Element by element on softfloat.
void sum_on_softfloat(const MatrixProblem& problem, float* out, std::int64_t out_stride) {
  const auto terms = static_cast<std::size_t>(problem.terms);
  const auto code_of = [&](float x) {
    return softfloat::convert(problem.input, softfloat::binary32, softfloat::from_float(x)).bits;
  };
  std::vector<softfloat::Bits> a(terms);
  std::vector<softfloat::Bits> b(terms);
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    for (std::int64_t j = 0; j < problem.columns; ++j) {
      for (std::int64_t k = 0; k < problem.terms; ++k) {
        const std::int64_t b_at =
            problem.b_transposed ? j * problem.b_stride + k : k * problem.b_stride + j;
        a[static_cast<std::size_t>(k)] = code_of(problem.a[i * problem.a_stride + k]);
        b[static_cast<std::size_t>(k)] = code_of(problem.b[b_at]);
      }
      const softfloat::Rounded sum =
          sum_products(problem.order, problem.product, problem.input, problem.accumulator, a, b);
      out[i * out_stride + j] = softfloat::to_float(problem.accumulator, sum.bits);
    }
  }
}

/// An order that ends in a matrix unit.
Result<bool> sum_on_unit(const MatrixProblem& problem, const MatrixUnit& unit, float* out,
                         std::int64_t out_stride, const EngineOptions& options) {
  Result<bool> fits = check_formats(problem.order, problem.input, problem.accumulator);
  if (fits) fits = check_length(problem.order, problem.terms);
  if (!fits) return fits.error();
  if (problem.order.items.size() == 1 || problem.terms == 0) {
    return multiply_on_unit({.unit = &unit,
                             .rows = problem.rows,
                             .terms = problem.terms,
                             .columns = problem.columns,
                             .a = problem.a,
                             .a_stride = problem.a_stride,
                             .b = problem.b,
                             .b_stride = problem.b_stride,
                             .b_transposed = problem.b_transposed,
                             .c = problem.c,
                             .c_stride = problem.c_stride},
                            out, out_stride, options);
  }
  const engine::Program program = engine::compile_order(problem.order, problem.terms);
  if (has_single_terms(program)) {
    sum_on_softfloat(problem, out, out_stride);
  } else {
    const Result<bool> done =
        engine::run_unit_program(problem, program, unit, out, out_stride, options);
    if (!done) return done.error();
  }
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    for (float& x : std::span(out + i * out_stride, static_cast<std::size_t>(problem.columns))) {
      if (std::isnan(x)) x = engine::canonical_nan;
    }
  }
  return true;
}

/// Row i as sum_columns() takes it.
ColumnsProblem row_problem(const MatrixProblem& problem, std::int64_t i) {
  return {.order = problem.order,
          .product = problem.product,
          .input = problem.input,
          .accumulator = problem.accumulator,
          .terms = problem.terms,
          .columns = problem.columns,
          .stride = problem.b_stride,
          .a = problem.a + i * problem.a_stride,
          .b = problem.b.floats()};
}

/// The outputs of a problem in lanes: groups of rows that share the loads of b, and what is left
/// over row by row.
class RowSums {
 public:
  RowSums(const MatrixProblem& problem, float* out, std::int64_t out_stride,
          const EngineOptions& options)
      : problem_(problem),
        out_(out),
        out_stride_(out_stride),
        options_(options),
        program_(engine::compile_order(problem.order, problem.terms)),
        plan_(engine::plan_lanes(problem.product, problem.input, problem.accumulator, false)),
        kernel_(engine::row_kernel(options.level)) {
    for (const softfloat::Format& f : program_.formats) {
      round_plans_.push_back(engine::plan_rounding(f));
    }
    std::int64_t row = 0;
    bool far = false;
    for (const engine::Step& step : program_.steps) {
      b_rows_.push_back(row);
      if (!takes_terms(step)) continue;
      row += step.count;
      far |= step.count > 1 && step.stride != 1;
    }
    if (!far || problem.rows < 2 * group) b_rows_.clear();
  }

  void run() {
    const std::int64_t grouped = takes_groups() ? problem_.rows / group * group : 0;
    const std::int64_t panels =
        grouped == 0 ? 0 : (problem_.columns + kernel_.columns - 1) / kernel_.columns;
    // A share of the rows for one panel of columns, which stays in the cache.
    const std::int64_t groups = grouped / group;
    const std::int64_t shares =
        std::clamp<std::int64_t>(options_.threads, 1, std::max(groups, one));
    parallel_for(panels * shares, options_.threads, [&](std::int64_t task) {
      const std::int64_t column =
          std::min(task / shares * kernel_.columns, problem_.columns - kernel_.columns);
      const std::int64_t share = task % shares;
      sum_groups(share * groups / shares, (share + 1) * groups / shares, column);
    });
    parallel_for(problem_.rows - grouped, options_.threads,
                 [&](std::int64_t i) { sum_row(grouped + i); });
  }

 private:
  static constexpr std::int64_t group = engine::rows_per_group;
  static constexpr std::int64_t one = 1;

  [[nodiscard]] bool takes_groups() const {
    return kernel_.sum != nullptr && problem_.columns >= kernel_.columns &&
           std::ranges::none_of(program_.steps, [](const engine::Step& step) {
             return step.kind == engine::StepKind::exact;
           });
  }

  static bool takes_terms(const engine::Step& step) {
    return step.kind == engine::StepKind::start || step.kind == engine::StepKind::terms;
  }

  /// The panel of b at `column`, its rows in the order in which the program takes them.
  [[nodiscard]] std::vector<float> copy_panel(std::int64_t column) const {
    std::vector<float> panel(static_cast<std::size_t>(problem_.terms * kernel_.columns));
    float* to = panel.data();
    for (const engine::Step& step : program_.steps) {
      if (!takes_terms(step)) continue;
      for (std::int64_t i = 0; i < step.count; ++i, to += kernel_.columns) {
        const std::int64_t k = step.first + i * step.stride;
        std::copy_n(problem_.b.floats() + k * problem_.b_stride + column, kernel_.columns, to);
      }
    }
    return panel;
  }

  void sum_groups(std::int64_t first, std::int64_t last, std::int64_t column) const {
    constexpr std::size_t alignment = 64;
    std::vector<std::byte> memory(
        engine::row_scratch_bytes * static_cast<std::size_t>(program_.slots) + alignment);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const bool copied = !b_rows_.empty();
    const std::vector<float> panel = copied ? copy_panel(column) : std::vector<float>();
    for (std::int64_t i = first * group; i < last * group; i += group) {
      float* const results = out_ + i * out_stride_ + column;
      // Panels may overlap: where threads write the same numbers, each has results of its own.
      float sums[group * engine::most_row_columns];
      kernel_.sum({.program = &program_,
                   .plan = &plan_,
                   .round_plans = round_plans_.data(),
                   .a = problem_.a + i * problem_.a_stride,
                   .a_stride = problem_.a_stride,
                   .b = copied ? panel.data() : problem_.b.floats() + column,
                   .b_stride = copied ? kernel_.columns : problem_.b_stride,
                   .b_rows = copied ? b_rows_.data() : nullptr,
                   .out = sums,
                   .out_stride = engine::most_row_columns,
                   .scratch = memory.data() + (alignment - address % alignment) % alignment});
      for (std::int64_t r = 0; r < group; ++r) {
        const std::int64_t done = column % kernel_.columns == 0
                                      ? 0
                                      : kernel_.columns - problem_.columns % kernel_.columns;
        for (std::int64_t j = done; j < kernel_.columns; ++j) {
          const float x = sums[r * engine::most_row_columns + j];
          results[r * out_stride_ + j] = std::isnan(x) ? engine::canonical_nan : x;
        }
      }
    }
  }

  void sum_row(std::int64_t i) const {
    const std::span<float> results(out_ + i * out_stride_,
                                   static_cast<std::size_t>(problem_.columns));
    static_cast<void>(
        sum_columns(row_problem(problem_, i), results, {}, {.level = options_.level}));
  }

  const MatrixProblem& problem_;
  float* out_;
  std::int64_t out_stride_;
  const EngineOptions& options_;
  engine::Program program_;
  engine::LanePlan plan_;
  engine::RowKernel kernel_;
  std::vector<engine::LanePlan> round_plans_;
  std::vector<std::int64_t> b_rows_;  ///< as RowKernelArguments has them; empty: b is used in place
};

/// Columns whose numbers lie side by side, in an order whose lanes are terms.
void sum_columns_by_terms(const MatrixProblem& problem, Product product, float* out,
                          std::int64_t out_stride, const EngineOptions& options) {
  // Of several rows, as many as stay in the cache for the next one.
  const std::int64_t columns_at_once =
      problem.rows == 1 ? (problem.columns + options.threads - 1) / options.threads : 64;
  const std::int64_t shares = (problem.columns + columns_at_once - 1) / columns_at_once;
  parallel_for(shares, options.threads, [&](std::int64_t share) {
    const std::int64_t j = share * columns_at_once;
    const std::int64_t count = std::min(columns_at_once, problem.columns - j);
    for (std::int64_t i = 0; i < problem.rows; ++i) {
      float* const results = out + i * out_stride + j;
      engine::sum_dots({.width = engine::dot_lanes(problem.order.items[0]),
                        .fused = product == Product::fused,
                        .a = problem.a + i * problem.a_stride,
                        .b = problem.b + j * problem.b_stride,
                        .b_stride = problem.b_stride,
                        .terms = problem.terms,
                        .columns = count,
                        .out = results},
                       options.level);
      for (float& x : std::span(results, static_cast<std::size_t>(count))) {
        if (std::isnan(x)) x = engine::canonical_nan;
      }
    }
  });
}

/// Columns of b as floats: what codes and columns that lie side by side become, panel by panel.
void sum_panels(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                const EngineOptions& options) {
  constexpr std::int64_t most_numbers = std::int64_t{1} << 18;  // a megabyte
  constexpr std::int64_t least_columns = 64;
  const std::int64_t width =
      std::max(least_columns, most_numbers / problem.terms / least_columns * least_columns);
  const std::int64_t panels = (problem.columns + width - 1) / width;
  parallel_for(panels, options.threads, [&](std::int64_t i) {
    MatrixProblem part = problem;
    part.columns = std::min(width, problem.columns - i * width);
    std::vector<float> panel(static_cast<std::size_t>(problem.terms * part.columns));
    engine::copy_panel({.numbers = problem.b,
                        .stride = problem.b_stride,
                        .transposed = problem.b_transposed,
                        .rows = problem.terms,
                        .first_column = i * width,
                        .columns = part.columns},
                       panel.data(), part.columns, options.level);
    part.b = panel.data();
    part.b_stride = part.columns;
    part.b_transposed = false;
    RowSums(part, out + i * width, out_stride, {.level = options.level}).run();
  });
}

}  // namespace

Result<bool> sum_matrix(const MatrixProblem& problem, float* out, std::int64_t out_stride,
                        const EngineOptions& options) {
  const std::optional<MatrixUnit> unit = unit_of(problem.order);
  const Result<bool> checked =
      check(problem, out_stride, unit.has_value() && problem.order.items.size() == 1);
  if (!checked) return checked.error();
  if (unit) return sum_on_unit(problem, *unit, out, out_stride, options);
  // No columns: everything is checked and nothing computed.
  ColumnsProblem probe = row_problem(problem, 0);
  probe.columns = 0;
  probe.stride = 0;
  const Result<bool> possible = sum_columns(probe, {}, {}, options);
  if (!possible) return possible.error();
  if (problem.terms > 0 && (problem.b_transposed || problem.b.floats() == nullptr)) {
    const engine::LanePlan plan =
        engine::plan_lanes(problem.product, problem.input, problem.accumulator, false);
    if (problem.columns == 0) return true;
    if (problem.b_transposed && engine::takes_dots(problem.order, plan, problem.terms)) {
      sum_columns_by_terms(problem, plan.product, out, out_stride, options);
    } else {
      sum_panels(problem, out, out_stride, options);
    }
    return true;
  }
  if (problem.terms > 0) {
    RowSums(problem, out, out_stride, options).run();
    return true;
  }
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    std::fill_n(out + i * out_stride, problem.columns, 0.0F);
  }
  return true;
}

}  // namespace kvsim
