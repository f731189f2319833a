// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// How long products of matrices take, as multiples of a native loop of the same vector width in the
// same run, operands in cache, one thread; and decode attention as a multiple of its products.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/attention/run.h"
#include "sim/engine/matrix.h"
#include "softfloat/formats.h"
#include "tests/bench/native_loops.h"

namespace kvsim::bench {
namespace {

constexpr std::int64_t rows = 64;
constexpr std::int64_t columns = 64;
constexpr std::int64_t terms = 1024;

/// Sums of four uniform numbers, close to normal ones, with 10 bits of fraction or fewer.
std::vector<float> numbers(std::int64_t count, std::uint64_t seed, double steps = 1024) {
  std::vector<float> out;
  std::uint64_t state = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int j = 0; j < 4; ++j) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += static_cast<double>(state >> 40) / 0x1p24 - 0.5;
    }
    out.push_back(static_cast<float>(static_cast<std::int64_t>(sum * steps)) /
                  static_cast<float>(steps));
  }
  return out;
}

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

/// One line of the table.
struct Line {
  std::string name;
  std::string_view level;  ///< whose native loop it is compared with
  double operations = 0;   ///< multiply-adds of one run
  double at_most = 0;      ///< the ratio that it should not exceed; 0: none
  bool native = false;     ///< a native loop: the fastest of a level is the yardstick
  bool is_fused = true;    ///< compared with fused native loops, or with those that round twice
  std::function<bool()> run;
  std::vector<double> nanoseconds = {};  ///< for a multiply-add, one for each repetition

  [[nodiscard]] double median() const {
    std::vector<double> sorted = nanoseconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
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

/// Decode with a long cache: 32 query heads that share 8 K/V heads.
struct Decode {
  AttentionShape shape;
  std::vector<float> q, k, v;

  explicit Decode(std::int64_t kv_len) {
    shape.query_heads = 32;
    shape.kv_heads = 8;
    shape.query_len = 1;
    shape.kv_len = kv_len;
    shape.head_dim = 128;
    q = numbers(shape.query_heads * shape.head_dim, 3);
    k = numbers(shape.kv_heads * kv_len * shape.head_dim, 4);
    v = numbers(shape.kv_heads * kv_len * shape.head_dim, 5);
  }
  [[nodiscard]] double operations() const {
    return 2.0 * static_cast<double>(shape.query_heads * shape.kv_len * shape.head_dim);
  }
  [[nodiscard]] bool run(SimdLevel level) const {
    const AttentionProblem problem{.shape = shape,
                                   .mask = {},
                                   .storage = softfloat::binary16,
                                   .q = q.data(),
                                   .k = k.data(),
                                   .v = v.data(),
                                   .launch = {.splits = 1}};
    AttentionOptions options;
    options.engine.level = level;
    return run_attention(*find_attention_kernel("h100-fa2"), problem, options).has_value();
  }
};

constexpr std::string_view decode_name = "h100-fa2 decode";

/// The fastest native loop of a level, 0 where there is none.
double yardstick(const std::vector<Line>& lines, const Line& line) {
  double best = 0;
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
    double base = yardstick(lines, line);
    if (line.name.starts_with(decode_name)) {
      for (const Line& each : lines) {
        const std::string hopper = fmt::format("h100.mma.f16.f32, {}", line.level);
        if (each.name == hopper) base = each.median();
      }
    }
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

int run(bool quick) {
  Operands data;
  const Decode decode(quick ? 256 : 8192);
  std::vector<Line> lines = native_lines(data);
  for (const SimdLevel level : {SimdLevel::avx512, SimdLevel::avx2}) {
    if (level > best_simd_level()) continue;
    add_units(lines, data, level);
    add_orders(lines, data, level);
    lines.push_back({.name = fmt::format("{}, {} keys, {}", decode_name, decode.shape.kv_len,
                                         simd_level_name(level)),
                     .level = simd_level_name(level),
                     .operations = decode.operations(),
                     .at_most = 1.5,
                     .run = [&decode, level] { return decode.run(level); }});
  }
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
  if (argc > 1 && !quick) {
    fmt::print(stderr, "{}: accepted is --quick\n", argv[0]);
    return 2;
  }
  return kvsim::bench::run(quick);
}
