// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// How fast the engine sums, beside a bare loop of intrinsics, MPFR and the scalar softfloat. The
// figure of merit is a ratio within one run; the last table holds the ratios of the medians.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/columns.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "tests/bench/bare_loops.h"

namespace kvsim::bench {
namespace {

using softfloat::binary16;
using softfloat::Bits;
using softfloat::Format;

constexpr std::int64_t terms = 128;
constexpr std::int64_t columns = 1024;
constexpr std::int64_t slow_columns = 16;  ///< of MPFR and softfloat

/// Inputs: multiples of 2^−10 between −1 and 1, numbers of every format here but the 8-bit ones.
struct Inputs {
  std::vector<float> a, b;
  std::vector<std::uint16_t> a_codes, b_codes;

  Inputs() {
    std::uint64_t state = 1;
    const auto next = [&] {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<float>(static_cast<std::int64_t>(state >> 53) - 1024) / 1024.0F;
    };
    const auto code = [](float x) {
      return static_cast<std::uint16_t>(
          softfloat::convert(binary16, softfloat::binary32, softfloat::from_float(x)).bits);
    };
    for (std::int64_t i = 0; i < terms; ++i) a.push_back(next());
    for (std::int64_t i = 0; i < terms * columns; ++i) b.push_back(next());
    for (const float x : a) a_codes.push_back(code(x));
    for (const float x : b) b_codes.push_back(code(x));
  }
};

const Inputs& inputs() {
  static const Inputs all;
  return all;
}

ColumnsProblem engine_problem(const char* order, Product product, const Format& input,
                              const Format& accumulator) {
  return {.order = *parse_order(order),
          .product = product,
          .input = input,
          .accumulator = accumulator,
          .terms = terms,
          .columns = columns,
          .stride = columns,
          .a = inputs().a.data(),
          .b = inputs().b.data()};
}

void count_items(benchmark::State& state, std::int64_t sums) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * sums * terms);
}

void run_engine(benchmark::State& state, const ColumnsProblem& problem, SimdLevel level,
                bool bounds) {
  std::vector<float> out(columns);
  std::vector<double> bound(bounds ? columns : 0);
  for (auto _ : state) {
    const bool done = sum_columns(problem, out, bound, {.level = level}).has_value();
    if (!done) state.SkipWithError("the engine refused the problem");
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_items(state, columns);
}

void run_bare(benchmark::State& state, const BareLoop& loop) {
  std::vector<float> out(columns);
  for (auto _ : state) {
    loop.run(inputs().a.data(), inputs().b.data(), terms, columns, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_items(state, columns);
}

void run_bare_half(benchmark::State& state, BareHalfLoop loop) {
  std::vector<std::uint16_t> out(columns);
  for (auto _ : state) {
    loop(inputs().a_codes.data(), inputs().b_codes.data(), terms, columns, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_items(state, columns);
}

std::uint16_t softfloat_sum(std::int64_t j) {
  const auto factor = [&](std::int64_t k) {
    return softfloat::mul(binary16, inputs().a_codes[static_cast<std::size_t>(k)],
                          inputs().b_codes[static_cast<std::size_t>(k * columns + j)])
        .bits;
  };
  Bits sum = factor(0);
  for (std::int64_t k = 1; k < terms; ++k) sum = softfloat::add(binary16, sum, factor(k)).bits;
  return static_cast<std::uint16_t>(sum);
}

void run_softfloat(benchmark::State& state) {
  for (auto _ : state) {
    for (std::int64_t j = 0; j < slow_columns; ++j) benchmark::DoNotOptimize(softfloat_sum(j));
  }
  count_items(state, slow_columns);
}

/// MPFR with the precision and exponent range of binary16, subnormals included.
void run_mpfr(benchmark::State& state) {
  mpfr_set_emin(-23);
  mpfr_set_emax(16);
  mpfr_t a, b, product, sum;
  mpfr_inits2(11, a, b, product, sum, static_cast<mpfr_ptr>(nullptr));
  for (auto _ : state) {
    for (std::int64_t j = 0; j < slow_columns; ++j) {
      for (std::int64_t k = 0; k < terms; ++k) {
        mpfr_set_flt(a, inputs().a[static_cast<std::size_t>(k)], MPFR_RNDN);
        mpfr_set_flt(b, inputs().b[static_cast<std::size_t>(k * columns + j)], MPFR_RNDN);
        mpfr_subnormalize(product, mpfr_mul(product, a, b, MPFR_RNDN), MPFR_RNDN);
        if (k == 0) {
          mpfr_set(sum, product, MPFR_RNDN);
        } else {
          mpfr_subnormalize(sum, mpfr_add(sum, sum, product, MPFR_RNDN), MPFR_RNDN);
        }
      }
      benchmark::DoNotOptimize(mpfr_get_flt(sum, MPFR_RNDN));
    }
  }
  mpfr_clears(a, b, product, sum, static_cast<mpfr_ptr>(nullptr));
  count_items(state, slow_columns);
}

/// Every way to compute the sums must give the bits of softfloat, or its time means nothing.
bool same_bits() {
  std::vector<std::uint16_t> expected;
  for (std::int64_t j = 0; j < columns; ++j) expected.push_back(softfloat_sum(j));
  const auto check = [&](const std::string& name, const std::vector<float>& out) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      if (out[j] != softfloat::to_float(binary16, expected[j])) {
        fmt::print(stderr, "{}: column {} differs from softfloat\n", name, j);
        return false;
      }
    }
    return true;
  };
  std::vector<float> out(columns);
  for (const BareLoop& loop : bare_loops()) {
    loop.run(inputs().a.data(), inputs().b.data(), terms, columns, out.data());
    if (!check(loop.name, out)) return false;
  }
  for (const SimdLevel level : list_simd_levels()) {
    const ColumnsProblem problem =
        engine_problem("sequential", Product::rounded, binary16, binary16);
    if (!sum_columns(problem, out, {}, {.level = level})) return false;
    if (!check(fmt::format("engine {}", simd_level_name(level)), out)) return false;
  }
  if (const BareHalfLoop loop = bare_half_loop()) {
    std::vector<std::uint16_t> codes(columns);
    loop(inputs().a_codes.data(), inputs().b_codes.data(), terms, columns, codes.data());
    if (codes != expected) {
      fmt::print(stderr, "bare AVX512-FP16 differs from softfloat\n");
      return false;
    }
  }
  return true;
}

constexpr const char* bare_half_name = "bare AVX512-FP16, 4 vectors";

std::string engine_name(SimdLevel level) {
  return fmt::format("engine {}", simd_level_name(level));
}

/// Registers every benchmark; returns their names in the order of the last table.
std::vector<std::string> register_all() {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, auto&&... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), arguments...);
    names.push_back(name);
  };
  for (const BareLoop& loop : bare_loops()) add(loop.name, run_bare, loop);
  if (const BareHalfLoop loop = bare_half_loop()) add(bare_half_name, run_bare_half, loop);
  const auto engine = [&](const std::string& name, const ColumnsProblem& problem, SimdLevel level,
                          bool bounds) { add(name, run_engine, problem, level, bounds); };
  const ColumnsProblem half = engine_problem("sequential", Product::rounded, binary16, binary16);
  for (const SimdLevel level : list_simd_levels()) engine(engine_name(level), half, level, false);
  const SimdLevel best = best_simd_level();
  engine("engine, with running bounds", half, best, true);
  engine("engine, pairwise", engine_problem("pairwise", Product::rounded, binary16, binary16), best,
         false);
  engine("engine, lanes(8,2)", engine_problem("lanes(8,2)", Product::rounded, binary16, binary16),
         best, false);
  engine("engine, binary16 fused", engine_problem("sequential", Product::fused, binary16, binary16),
         best, false);
  engine("engine, binary32 accumulator",
         engine_problem("sequential", Product::rounded, binary16, softfloat::binary32), best,
         false);
  engine("engine, bfloat16 accumulator",
         engine_problem("sequential", Product::rounded, binary16, softfloat::bfloat16), best,
         false);
  engine("engine, e8m13 accumulator",
         engine_problem("sequential", Product::rounded, binary16, softfloat::e8m13), best, false);
  add("softfloat, scalar", run_softfloat);
  add("MPFR, 11 bits", run_mpfr);
  return names;
}

/// Google Benchmark's table, and the medians for the ratios.
class MedianReporter : public benchmark::ConsoleReporter {
 public:
  MedianReporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.error_occurred) failed_ = true;
      if (run.aggregate_name != "median") continue;
      nanoseconds_[run.run_name.function_name] = 1e9 / run.counters.at("items_per_second").value;
    }
  }

  [[nodiscard]] bool failed() const { return failed_; }

  void print_ratios(const std::vector<std::string>& names) const {
    std::map<std::string, double> best_bare;  // by level
    for (const BareLoop& loop : bare_loops()) {
      const auto found = nanoseconds_.find(loop.name);
      if (found == nanoseconds_.end()) continue;
      double& best = best_bare.try_emplace(loop.instruction_set, found->second).first->second;
      best = std::min(best, found->second);
    }
    fmt::print("\nbinary16, product and sum rounded, {} sums of {} terms; median ns per term\n\n",
               columns, terms);
    fmt::print("| {:32} | {:>9} | {:>19} |\n", "", "ns", "÷ fastest bare loop");
    fmt::print("|{:-<34}|{:->11}|{:->21}|\n", "", ":", ":");
    for (const std::string& name : names) {
      const auto found = nanoseconds_.find(name);
      if (found == nanoseconds_.end()) continue;  // left out by --benchmark_filter
      const double time = found->second;
      std::string level(simd_level_name(best_simd_level()));
      for (const SimdLevel l : list_simd_levels()) {
        if (name == engine_name(l)) level = simd_level_name(l);
      }
      for (const BareLoop& loop : bare_loops()) {
        if (name == loop.name) level = loop.instruction_set;
      }
      if (best_bare.count(level) == 0) level = "avx2";
      const auto bare = best_bare.find(level);
      const std::string ratio =
          bare == best_bare.end() ? "-" : fmt::format("{:.2f} ({})", time / bare->second, level);
      fmt::print("| {:32} | {:9.4f} | {:>19} |\n", name, time, ratio);
    }
  }

 private:
  std::map<std::string, double> nanoseconds_;
  bool failed_ = false;
};

int run(int argc, char** argv) {
  std::vector<std::string> arguments{argv[0]};
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      quick = true;
    } else {
      arguments.emplace_back(argv[i]);
    }
  }
  // In front of the caller's own flags, which win.
  const std::vector<std::string> defaults{
      "--benchmark_enable_random_interleaving=true", "--benchmark_display_aggregates_only=true",
      quick ? "--benchmark_repetitions=3" : "--benchmark_repetitions=15",
      quick ? "--benchmark_min_time=0.001" : "--benchmark_min_time=0.02"};
  arguments.insert(arguments.begin() + 1, defaults.begin(), defaults.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

  if (!same_bits()) return 1;
  const std::vector<std::string> names = register_all();
  MedianReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print_ratios(names);
  return reporter.failed() ? 1 : 0;
}

}  // namespace
}  // namespace kvsim::bench

int main(int argc, char** argv) { return kvsim::bench::run(argc, argv); }
