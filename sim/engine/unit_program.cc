// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/unit_program.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/engine/panel.h"
#include "sim/tasks.h"
#include "softfloat/formats.h"

namespace kvsim::engine {
namespace {

constexpr std::int64_t rows_per_tile = 64;
constexpr std::int64_t columns_per_tile = 512;

/// One tile, with its slots.
class TileProgram {
 public:
  TileProgram(const MatrixProblem& problem, const Program& program, const MatrixUnit& unit,
              const EngineOptions& options)
      : problem_(problem), program_(program), unit_(unit), options_(options) {
    options_.threads = 1;
  }

  Result<bool> run(std::int64_t row, std::int64_t column, float* out, std::int64_t out_stride) {
    rows_ = std::min(rows_per_tile, problem_.rows - row);
    columns_ = std::min(columns_per_tile, problem_.columns - column);
    a_ = problem_.a + row * problem_.a_stride;
    b_ = problem_.b + (problem_.b_transposed ? column * problem_.b_stride : column);
    slots_.resize(static_cast<std::size_t>(program_.slots) * elements());
    for (const Step& step : program_.steps) {
      const Result<bool> done = run_step(step);
      if (!done) return done.error();
    }
    const float* const result = slot(program_.result).data();
    for (std::int64_t i = 0; i < rows_; ++i) {
      std::copy_n(result + i * columns_, columns_, out + (row + i) * out_stride + column);
    }
    return true;
  }

 private:
  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(rows_ * columns_); }
  std::span<float> slot(std::int32_t index) {
    return std::span(slots_).subspan(static_cast<std::size_t>(index) * elements(), elements());
  }

  Result<bool> run_step(const Step& step) {
    switch (step.kind) {
      case StepKind::unit:
        return multiply(step);
      case StepKind::join:
        return join(slot(step.slot), slot(step.other));
      case StepKind::round_to:
        return round_values(program_.formats[static_cast<std::size_t>(step.other)], slot(step.slot),
                            slot(step.slot), options_.level);
      case StepKind::zero:
      case StepKind::start:  // not here: single terms go beside the unit
      case StepKind::terms:
      case StepKind::exact:
        break;
    }
    std::ranges::fill(slot(step.slot), 0.0F);
    return true;
  }

  Result<bool> multiply(const Step& step) {
    UnitProblem call{.unit = &unit_,
                     .rows = rows_,
                     .terms = step.count,
                     .columns = columns_,
                     .a = a_ + step.first,
                     .a_stride = problem_.a_stride,
                     .b = b_ + step.first * (problem_.b_transposed ? 1 : problem_.b_stride),
                     .b_stride = problem_.b_stride * (problem_.b_transposed ? 1 : step.stride),
                     .b_transposed = problem_.b_transposed};
    const bool table = step.other != 0;
    if (table || (step.stride != 1 && step.count > 1)) {
      gather(step, call);
    }
    return multiply_on_unit(call, slot(step.slot).data(), columns_, options_);
  }

  /// Copies the terms of a step that do not lie side by side.
  void gather(const Step& step, UnitProblem& call) {
    const auto position = [&](std::int64_t k) {
      return step.other != 0 ? program_.positions[static_cast<std::size_t>(step.first + k)]
                             : step.first + k * step.stride;
    };
    a_terms_.resize(static_cast<std::size_t>(rows_ * step.count));
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t k = 0; k < step.count; ++k) {
        a_terms_[static_cast<std::size_t>(i * step.count + k)] =
            a_[i * problem_.a_stride + position(k)];
      }
    }
    call.a = a_terms_.data();
    call.a_stride = step.count;
    // Rows of b may lie far apart, but the numbers of a column are side by side.
    if (step.other == 0 && step.stride > 0 && !problem_.b_transposed) return;
    b_terms_.resize(static_cast<std::size_t>(step.count * columns_));
    for (std::int64_t k = 0; k < step.count; ++k) {
      copy_panel({.numbers = b_,
                  .stride = problem_.b_stride,
                  .transposed = problem_.b_transposed,
                  .first_row = position(k),
                  .rows = 1,
                  .columns = columns_},
                 b_terms_.data() + k * columns_, columns_, options_.level);
    }
    call.b = b_terms_.data();
    call.b_stride = columns_;
    call.b_transposed = false;
  }

  /// to[i] = to[i] + from[i], rounded to the accumulator.
  Result<bool> join(std::span<float> to, std::span<const float> from) {
    if (problem_.accumulator == softfloat::binary32) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
      return true;
    }
    pair_.resize(2 * to.size());
    std::ranges::copy(to, pair_.begin());
    std::ranges::copy(from, pair_.begin() + static_cast<std::ptrdiff_t>(to.size()));
    const auto count = static_cast<std::int64_t>(to.size());
    return sum_columns({.order = {},
                        .product = Product::rounded,
                        .input = problem_.accumulator,
                        .accumulator = problem_.accumulator,
                        .terms = 2,
                        .columns = count,
                        .stride = count,
                        .b = pair_.data()},
                       to, {}, options_);
  }

  const MatrixProblem& problem_;
  const Program& program_;
  const MatrixUnit& unit_;
  EngineOptions options_;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  const float* a_ = nullptr;
  NumberPointer b_;
  std::vector<float> slots_;
  std::vector<float> a_terms_;
  std::vector<float> b_terms_;
  std::vector<float> pair_;
};

}  // namespace

Result<bool> run_unit_program(const MatrixProblem& problem, const Program& program,
                              const MatrixUnit& unit, float* out, std::int64_t out_stride,
                              const EngineOptions& options) {
  const std::int64_t tile_rows = (problem.rows + rows_per_tile - 1) / rows_per_tile;
  const std::int64_t tile_columns = (problem.columns + columns_per_tile - 1) / columns_per_tile;
  return run_tasks(tile_rows * tile_columns, options.threads, [&](std::int64_t tile) {
    return TileProgram(problem, program, unit, options)
        .run(tile / tile_columns * rows_per_tile, tile % tile_columns * columns_per_tile, out,
             out_stride);
  });
}

}  // namespace kvsim::engine
