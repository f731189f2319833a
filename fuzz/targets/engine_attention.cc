// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Every attention kernel on any small problem (shape, mask, launch, numbers, specials included):
// one line of error, or the same outputs and log-sums at every SIMD level of this CPU, with more
// than one thread, and with K and V as codes.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/targets/input.h"
#include "fuzz/targets/order_input.h"
#include "sim/attention/run.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace {

using kvsim::softfloat::Format;
using kvsim::targets::require;
namespace sf = kvsim::softfloat;

struct Numbers {
  std::vector<float> values;
  std::vector<std::uint16_t> codes;
};

Numbers draw(const Format& format, const kvsim::targets::Drawing& drawing, std::int64_t count,
             std::uint64_t first) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    const sf::Bits code =
        kvsim::targets::draw_code(drawing, format, first + static_cast<std::uint64_t>(i));
    numbers.values.push_back(sf::to_float(format, code));
    numbers.codes.push_back(static_cast<std::uint16_t>(code));
  }
  return numbers;
}

/// Whether two results have the same bits; every NaN is the quiet one.
bool equal(const std::vector<float>& x, const std::vector<float>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(y[i])) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvsim::targets::Input input(data, size);
  const kvsim::AttentionKernel& kernel = input.one_of(kvsim::attention_kernels());
  constexpr Format storages[] = {sf::binary16, sf::bfloat16, sf::binary32};
  kvsim::AttentionProblem problem;
  problem.storage = input.one_of(storages);
  problem.shape.kv_heads = 1 + input.below(2);
  problem.shape.query_heads = problem.shape.kv_heads * (1 + input.below(3));
  problem.shape.head_dim = 1 + input.below(80);
  problem.shape.kv_len = 1 + input.below(200);
  problem.shape.query_len = 1 + input.below(6);
  problem.mask.causal = input.flag();
  const std::int64_t mask = input.below(4);
  if (mask == 1) problem.mask.window = 1 + input.below(64);
  if (mask == 2) problem.mask.soft_cap = static_cast<float>(1 + input.below(50));
  if (mask == 3) problem.mask.first_key = input.below(8);
  problem.launch.batch = 1 + input.below(4);
  problem.launch.splits = input.below(9);
  problem.launch.paged = input.flag();
  if (input.flag()) problem.scale = static_cast<float>(1 + input.below(64)) * 0x1p-6F;
  const std::int64_t threads = 1 + input.below(4);
  problem.launch.cpu_threads = threads;

  const kvsim::AttentionShape& shape = problem.shape;
  const std::int64_t keys = shape.kv_heads * shape.kv_len * shape.head_dim;
  const auto queries = kvsim::targets::read_drawing(input);
  const auto cached = kvsim::targets::read_drawing(input);
  const Numbers q =
      draw(problem.storage, queries, shape.query_heads * shape.query_len * shape.head_dim, 0);
  const Numbers k = draw(problem.storage, cached, keys, 1U << 24U);
  const Numbers v = draw(problem.storage, cached, keys, 1U << 25U);
  problem.q = q.values.data();
  problem.k = k.values.data();
  problem.v = v.values.data();

  kvsim::AttentionOptions options;
  options.engine.level = kvsim::SimdLevel::scalar;
  const auto want = kvsim::run_attention(kernel, problem, options);
  if (!want) {
    kvsim::targets::check_error(want.error());
    return 0;
  }
  const auto expect_equal = [&] {
    const auto got = kvsim::run_attention(kernel, problem, options);
    require(got.has_value() && equal(got->out, want->out) && equal(got->lse, want->lse));
    require(got->splits == want->splits && got->exp_bounded == want->exp_bounded);
  };
  for (const kvsim::SimdLevel level : kvsim::list_simd_levels()) {
    options.engine.level = level;
    if (level != kvsim::SimdLevel::scalar) expect_equal();
  }
  options.engine.threads = static_cast<int>(threads);
  if (problem.storage != sf::binary32) {
    const auto code =
        problem.storage == sf::binary16 ? kvsim::NumberCode::binary16 : kvsim::NumberCode::bfloat16;
    problem.k = {code, k.codes.data()};
    problem.v = {code, v.codes.data()};
  }
  expect_equal();
  return 0;
}
