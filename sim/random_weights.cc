// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// Compiled once per instruction set; see engine/column_kernel.cc for the settings.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
#define HWY_BROKEN_EMU128 1
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/random_weights.cc"
#include "sim/random_weights.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/parallel.h"
#include "sim/philox.h"

#ifndef KVSIM_SIM_RANDOM_WEIGHTS_ONCE
#define KVSIM_SIM_RANDOM_WEIGHTS_ONCE
namespace kvsim::engine {

/// Blocks `begin` to `end` − 1 of a stream, four numbers each, to out[0 …).
struct RandomBlocks {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  float factor = 0;
  float* out = nullptr;
};

inline float number_of(std::uint32_t word, float factor) {
  const auto sum = static_cast<std::int32_t>((word & 0xff) + (word >> 8 & 0xff) +
                                             (word >> 16 & 0xff) + (word >> 24));
  return static_cast<float>(sum - 510) * factor;
}

inline void fill_plain(const RandomBlocks& blocks) {
  float* out = blocks.out;
  for (std::uint64_t index = blocks.begin; index < blocks.end; ++index) {
    for (const std::uint32_t word : philox_block(blocks.seed, blocks.stream, index)) {
      *out++ = number_of(word, blocks.factor);
    }
  }
}

}  // namespace kvsim::engine
#endif

HWY_BEFORE_NAMESPACE();
namespace kvsim::engine {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
inline void fill_blocks(const RandomBlocks& blocks) { fill_plain(blocks); }
#else

namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint32_t>;
using V = hn::Vec<Words>;

/// High and low words of the products of every lane with one multiplier.
struct Product32 {
  V high;
  V low;
};

HWY_INLINE Product32 multiply(V lanes, V multiplier) {
  const Words d;
  const auto even = hn::BitCast(d, hn::MulEven(lanes, multiplier));
  const auto odd = hn::BitCast(d, hn::MulEven(hn::DupOdd(lanes), multiplier));
  return {hn::OddEven(odd, hn::DupOdd(even)), hn::OddEven(hn::DupEven(odd), even)};
}

HWY_INLINE hn::Vec<hn::ScalableTag<float> > to_numbers(V word, float factor) {
  const Words d;
  const hn::RebindToSigned<Words> di;
  const hn::ScalableTag<float> df;
  const V pair_mask = hn::Set(d, 0x00ff00ffU);
  const V pairs = hn::Add(hn::And(word, pair_mask), hn::And(hn::ShiftRight<8>(word), pair_mask));
  const V sum = hn::Add(hn::And(pairs, hn::Set(d, 0xffffU)), hn::ShiftRight<16>(pairs));
  const auto centred = hn::Sub(hn::BitCast(di, sum), hn::Set(di, 510));
  return hn::Mul(hn::ConvertTo(df, centred), hn::Set(df, factor));
}

/// As many counters as lanes at once; the words of one block come out side by side.
inline void fill_blocks(const RandomBlocks& blocks) {
  const Words d;
  const auto lanes = static_cast<std::uint64_t>(hn::Lanes(d));
  constexpr std::uint32_t golden_ratio = 0x9E3779B9;
  constexpr std::uint32_t sqrt3_minus_one = 0xBB67AE85;
  const V multiplier0 = hn::Set(d, 0xD2511F53U);
  const V multiplier1 = hn::Set(d, 0xCD9E8D57U);
  std::uint64_t index = blocks.begin;
  float* out = blocks.out;
  // The low words of the counters of one vector must not overflow into the high word.
  for (; index + lanes <= blocks.end &&
         static_cast<std::uint32_t>(index) <= 0xffffffffU - static_cast<std::uint32_t>(lanes);
       index += lanes) {
    V c0 = hn::Iota(d, static_cast<std::uint32_t>(index));
    V c1 = hn::Set(d, static_cast<std::uint32_t>(index >> 32));
    V c2 = hn::Set(d, static_cast<std::uint32_t>(blocks.stream));
    V c3 = hn::Set(d, static_cast<std::uint32_t>(blocks.stream >> 32));
    auto key0 = static_cast<std::uint32_t>(blocks.seed);
    auto key1 = static_cast<std::uint32_t>(blocks.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const Product32 p0 = multiply(c0, multiplier0);
      const Product32 p1 = multiply(c2, multiplier1);
      c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, key0));
      c1 = p1.low;
      c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, key1));
      c3 = p0.low;
      key0 += golden_ratio;
      key1 += sqrt3_minus_one;
    }
    const hn::ScalableTag<float> df;
    hn::StoreInterleaved4(to_numbers(c0, blocks.factor), to_numbers(c1, blocks.factor),
                          to_numbers(c2, blocks.factor), to_numbers(c3, blocks.factor), df, out);
    out += 4 * lanes;
  }
  RandomBlocks rest = blocks;
  rest.begin = index;
  rest.out = out;
  fill_plain(rest);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace kvsim::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "sim/engine/simd_targets.h"

namespace kvsim::engine {
namespace {

using BlocksKernel = void (*)(const RandomBlocks&);

BlocksKernel blocks_kernel(SimdLevel level) {
  constexpr LevelFunctions<BlocksKernel> kernels KVSIM_AT_EACH_LEVEL(fill_blocks);
  return function_or_scalar(level, kernels);
}

}  // namespace
}  // namespace kvsim::engine

namespace kvsim {

Result<bool> fill_random_weights(const RandomWeights& weights, std::int64_t first,
                                 std::span<float> out, const EngineOptions& options) {
  if (first < 0 || first % 4 != 0) {
    return Error{ErrorKind::usage, "random weights: accepted: a first place that 4 divides"};
  }
  const engine::BlocksKernel kernel = engine::blocks_kernel(options.level);
  const auto factor =
      static_cast<float>(static_cast<double>(weights.deviation) / four_bytes_deviation);
  constexpr std::int64_t chunk = std::int64_t{1} << 14;  // numbers; stays in the first-level cache
  const auto size = static_cast<std::int64_t>(out.size());
  // Row 0 alone tells whether the format can be.
  Result<bool> problem = round_values(weights.storage, {}, {}, options.level);
  if (!problem) return problem;
  parallel_for((size + chunk - 1) / chunk, options.threads, [&](std::int64_t i) {
    const std::int64_t begin = i * chunk;
    const std::int64_t whole = std::min(chunk, size - begin) / 4;
    const auto block = static_cast<std::uint64_t>((first + begin) / 4);
    kernel({.seed = weights.seed,
            .stream = weights.stream,
            .begin = block,
            .end = block + static_cast<std::uint64_t>(whole),
            .factor = factor,
            .out = out.data() + begin});
    const PhiloxBlock last =
        philox_block(weights.seed, weights.stream, block + static_cast<std::uint64_t>(whole));
    const std::int64_t end = std::min(size, begin + chunk);
    for (std::int64_t j = begin + 4 * whole; j < end; ++j) {
      out[static_cast<std::size_t>(j)] =
          engine::number_of(last[static_cast<std::size_t>(j % 4)], factor);
    }
    const std::span<float> part =
        out.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    static_cast<void>(round_values(weights.storage, part, part, options.level));
  });
  return true;
}

}  // namespace kvsim
#endif  // HWY_ONCE
