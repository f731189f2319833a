// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// How long products of matrices take, as multiples of a native loop of the same vector width in the
// same run, operands in cache, one thread; and layers of a decoder as multiples of their products.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/matrix.h"
#include "softfloat/formats.h"
#include "tests/bench/bench_line.h"
#include "tests/bench/layer_lines.h"
#include "tests/bench/native_loops.h"

namespace kvsim::bench {
namespace {

constexpr std::int64_t rows = 64;
constexpr std::int64_t columns = 64;
constexpr std::int64_t terms = 1024;

struct Operands {
  std::vector<float> a = numbers(rows * terms, 1);
  std::vector<float> b = numbers(terms * columns, 2);
  /// Few enough bits for bfloat16, and for 8-bit formats.
  std::vector<float> a16 = numbers(rows * terms, 1, 64);
  std::vector<float> b16 = numbers(terms * columns, 2, 64);
  std::vector<float> a8 = numbers(rows * terms, 1, 4);
  std::vector<float> b8 = numbers(terms * columns, 2, 4);
  std::vector<float> out = std::vector<float>(rows * columns);
};

/// A product in one of native_loops().
std::vector<Line> native_lines(Operands& data) {
  std::vector<Line> lines;
  for (const NativeLoop& loop : native_loops()) {
    lines.push_back({.name = loop.name,
                     .level = loop.instruction_set,
                     .operations = double{rows} * columns * terms,
                     .native = true,
                     .is_fused = loop.fused,
                     .run = [&data, loop] {
                       loop.run(data.a.data(), data.b.data(), rows, terms, columns,
                                data.out.data());
                       return true;
                     }});
  }
  return lines;
}

struct UnitGoal {
  const char* unit;
  double avx512, avx2;  ///< goals, or 0
};

void add_units(std::vector<Line>& lines, Operands& data, SimdLevel level) {
  constexpr UnitGoal goals[] = {
      {"h100.mma.f16.f32", 6.5, 10}, {"a100.mma.f16.f32", 7.5, 12},    {"v100.mma.f16.f32", 0, 0},
      {"h100.mma.bf16.f32", 0, 0},   {"h100.mma.tf32.f32", 0, 0},      {"h100.mma.f16.f16", 0, 0},
      {"h100.wgmma.e4m3.f32", 0, 0}, {"b200.tcgen05.e4m3.f32", 0, 0},  {"mi300.mfma.f16.f32", 0, 0},
      {"mi300.mfma.bf16.f32", 0, 0}, {"x86.vdpbf16ps.bf16.f32", 0, 0},
  };
  for (const UnitGoal& goal : goals) {
    const MatrixUnit* unit = find_matrix_unit(goal.unit);
    const int precision = unit->operand.precision;
    const std::vector<float>& a = precision < 8 ? data.a8 : precision == 8 ? data.a16 : data.a;
    const std::vector<float>& b = precision < 8 ? data.b8 : precision == 8 ? data.b16 : data.b;
    const UnitProblem problem{.unit = unit,
                              .rows = rows,
                              .terms = terms,
                              .columns = columns,
                              .a = a.data(),
                              .a_stride = terms,
                              .b = b.data(),
                              .b_stride = columns};
    lines.push_back(
        {.name = fmt::format("{}, {}", goal.unit, simd_level_name(level)),
         .level = simd_level_name(level),
         .operations = double{rows} * columns * terms,
         .at_most = level == SimdLevel::avx512 ? goal.avx512 : goal.avx2,
         .run = [&data, problem, level] {
           return multiply_on_unit(problem, data.out.data(), columns, {.level = level}).has_value();
         }});
  }
}

void add_orders(std::vector<Line>& lines, Operands& data, SimdLevel level) {
  struct OrderGoal {
    const char* order;
    Product product;
  };
  constexpr OrderGoal goals[] = {{"sequential", Product::fused},
                                 {"sequential", Product::rounded},
                                 {"lanes(8,2)", Product::fused},
                                 {"lanes(8,2)", Product::rounded}};
  for (const OrderGoal& goal : goals) {
    const MatrixProblem problem{.order = *parse_order(goal.order),
                                .product = goal.product,
                                .input = softfloat::binary32,
                                .accumulator = softfloat::binary32,
                                .rows = rows,
                                .terms = terms,
                                .columns = columns,
                                .a = data.a.data(),
                                .a_stride = terms,
                                .b = data.b.data(),
                                .b_stride = columns};
    lines.push_back(
        {.name = fmt::format("f32 {}, {}, {}", goal.order, to_string(goal.product),
                             simd_level_name(level)),
         .level = simd_level_name(level),
         .operations = double{rows} * columns * terms,
         .at_most = 1.5,
         .is_fused = goal.product == Product::fused,
         .run = [&data, problem, level] {
           return sum_matrix(problem, data.out.data(), columns, {.level = level}).has_value();
         }});
  }
}

/// What a line is compared with; 0 where there is nothing.
double yardstick(const std::vector<Line>& lines, const Line& line) {
  double best = 0;
  if (!line.base.empty()) {
    for (const Line& each : lines) {
      if (each.name == line.base) best = std::max(best, each.median());
      if (each.name == read_name) best = std::max(best, line.bytes * each.median());
    }
    return best;
  }
  for (const Line& each : lines) {
    if (!each.native || each.level != line.level || each.is_fused != line.is_fused) continue;
    best = best == 0 ? each.median() : std::min(best, each.median());
  }
  return best;
}

void print(const std::vector<Line>& lines) {
  fmt::print("| {:44} | {:>9} | {:>7} | {:>7} |\n", "", "ns", "ratio", "at most");
  fmt::print("|{:-<46}|{:->11}|{:->9}|{:->9}|\n", "", ":", ":", ":");
  for (const Line& line : lines) {
    const double base = yardstick(lines, line);
    fmt::print("| {:44} | {:9.4f} | {:>7} | {:>7} |\n", line.name, line.median(),
               base == 0 ? "-" : fmt::format("{:.2f}", line.median() / base),
               line.at_most == 0 ? "" : fmt::format("{}", line.at_most));
  }
}

/// Runs everything once per repetition, one after another, so that a busy moment hits all alike.
/// What counts is the processor's time, not that of other programs.
bool measure(std::vector<Line>& lines, int repetitions) {
  constexpr double shortest = 2e7;  // multiply-adds of one measurement, at least
  for (int i = 0; i < repetitions; ++i) {
    for (Line& line : lines) {
      const int runs = std::max(1, static_cast<int>(shortest / line.operations));
      const std::clock_t begin = std::clock();
      for (int run = 0; run < runs; ++run) {
        if (!line.run()) {
          fmt::print(stderr, "{}: the engine refused the problem\n", line.name);
          return false;
        }
      }
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      line.nanoseconds.push_back(1e9 * seconds / runs / line.operations);
    }
  }
  return true;
}

int run(bool quick, std::string_view only) {
  Operands data;
  const std::shared_ptr<const LayerNumbers> layers = make_layer_numbers(quick);
  std::vector<Line> lines = native_lines(data);
  lines.push_back(memory_line(layers));
  for (const SimdLevel level : {SimdLevel::avx512, SimdLevel::avx2}) {
    if (level > best_simd_level()) continue;
    add_units(lines, data, level);
    add_orders(lines, data, level);
    const std::vector<Line> of_layers = layer_lines(layers, level);
    lines.insert(lines.end(), of_layers.begin(), of_layers.end());
  }
  std::erase_if(lines, [&](const Line& line) {
    const bool wanted = line.native || line.name.find(only) != std::string::npos ||
                        line.name == read_name || line.name.starts_with("h100.mma.");
    return !wanted;
  });
  if (!measure(lines, quick ? 1 : 11)) return 1;
  fmt::print(
      "{} × {} × {}, one thread; median ns for a multiply-add; ratio to the fastest native loop of "
      "the width,\nof decode to the time of the Hopper row\n\n",
      rows, columns, terms);
  print(lines);
  return 0;
}

}  // namespace
}  // namespace kvsim::bench

int main(int argc, char** argv) {
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  const std::string_view option = argc == 2 ? argv[1] : "";
  constexpr std::string_view only = "--only=";
  if (argc > 1 && !quick && !option.starts_with(only)) {
    fmt::print(stderr, "{}: accepted are --quick and --only=PART-OF-A-NAME\n", argv[0]);
    return 2;
  }
  return kvsim::bench::run(quick, option.starts_with(only) ? option.substr(only.size()) : "");
}
