// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// How many cases a second fuzzing tries on one core: the targets that compare arithmetic with MPFR,
// and scores of the search for flips (attention with head_dim 64 and 128 keys), beside a target
// that does nothing. Processor time; without libFuzzer, its mutations and the sanitizers.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/score.h"
#include "sim/philox.h"

// The targets under names of their own (CMakeLists.txt).
extern "C" {
int fuzz_empty(const std::uint8_t* data, std::size_t size);
int fuzz_softfloat(const std::uint8_t* data, std::size_t size);
int fuzz_softfloat_sums(const std::uint8_t* data, std::size_t size);
}

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

/// Random inputs of `bytes` each; the first one is `first` where it is not −1.
void run_target(benchmark::State& state, Target target, std::size_t bytes, int first) {
  constexpr std::size_t inputs = 256;
  std::vector<std::uint8_t> data(inputs * bytes);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::uint8_t>(kvsim::philox_bits(0, 1, i));
  }
  for (std::size_t i = 0; first >= 0 && i < inputs; ++i) {
    data[i * bytes] = static_cast<std::uint8_t>(first);
  }
  std::size_t next = 0;
  for (auto step : state) {
    (void)step;
    benchmark::DoNotOptimize(target(data.data() + next * bytes, bytes));
    next = (next + 1) % inputs;
  }
  state.SetItemsProcessed(state.iterations());
}

void run_score(benchmark::State& state, std::int64_t splits) {
  kvsim::fuzz::CaseShape shape;
  shape.kind = kvsim::fuzz::CaseKind::attention;
  shape.attention = {
      .query_heads = 1, .kv_heads = 1, .query_len = 1, .kv_len = 128, .head_dim = 64};
  shape.kernels = {kvsim::fuzz::KernelPath{"a100-fa2", false, splits},
                   kvsim::fuzz::KernelPath{"a100-fa2", true, 1}};
  const auto scorer = kvsim::fuzz::FlipScorer::make(shape);
  if (!scorer) {
    state.SkipWithError(scorer.error().message.c_str());
    return;
  }
  kvsim::fuzz::Random random({.seed = 1});
  const kvsim::fuzz::FlipCase flip_case =
      kvsim::fuzz::ValueFitter(shape.storage).random_case(shape, random);
  for (auto step : state) {
    (void)step;
    benchmark::DoNotOptimize(scorer->score(flip_case));
  }
  state.SetItemsProcessed(state.iterations());
}

/// Operations of fuzz/targets/softfloat.cc by their number.
constexpr const char* operations[] = {"add", "sub",  "mul",     "div",
                                      "fma", "sqrt", "convert", "round_to_integral"};

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("empty", run_target, fuzz_empty, 34, -1);
  for (int i = 0; i < 8; ++i) {
    benchmark::RegisterBenchmark((std::string("softfloat/") + operations[i]).c_str(), run_target,
                                 fuzz_softfloat, 34, i);
  }
  for (int i = 0; i < 3; ++i) {
    constexpr const char* sums[] = {"fused_sum", "exact_sum", "exact_dot"};
    benchmark::RegisterBenchmark((std::string("softfloat_sums/") + sums[i] + "/16").c_str(),
                                 run_target, fuzz_softfloat_sums, 14 + 16 * 16, i);
  }
  benchmark::RegisterBenchmark("score/attention/64/128", run_score, 1);
  benchmark::RegisterBenchmark("score/attention/64/128/splits:2", run_score, 2);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
