// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/random_problem.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/inputs.h"
#include "sim/philox.h"

namespace kvsim::plain {
namespace {

/// Draws of one problem, in order.
class Draws {
 public:
  Draws(std::uint64_t stream, std::uint64_t index) : stream_(stream), index_(index << 32) {}

  std::uint64_t bits() { return philox_bits(7, stream_, index_++); }
  std::int64_t within(std::int64_t low, std::int64_t high) {  // both included
    if (high <= low) return low;
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return within(1, 100) <= percent; }
  float gaussian() { return static_cast<float>(normal(7, stream_, index_++)); }
  template <typename T>
  T one_of(std::span<const T> values) {
    return values[static_cast<std::size_t>(within(0, std::ssize(values) - 1))];
  }

 private:
  std::uint64_t stream_;
  std::uint64_t index_;
};

enum class Numbers : std::uint8_t { gaussian, large_range, growing, cancel, integers };

void draw_sizes(const Limits& limits, Draws& draws, Problem& p) {
  constexpr std::array<std::int64_t, 12> tiles{16,  32,  64,  80,  96,  112,
                                               128, 144, 176, 192, 256, 512};
  p.head_dim = draws.one_of(limits.head_dims);
  if (p.head_dim > 64 && draws.chance(60)) p.head_dim = limits.head_dims[0];
  switch (draws.within(0, 3)) {
    case 0:
      p.kv_len = draws.within(1, 40);
      break;
    case 1:
      p.kv_len = draws.one_of(std::span<const std::int64_t>(tiles)) * draws.within(1, 2) +
                 draws.within(-1, 1);
      break;
    default:
      p.kv_len = draws.within(1, limits.longest);
  }
  p.kv_len = std::min(p.kv_len, limits.longest);
  std::int64_t queries = std::max<std::int64_t>(1, limits.products / (p.kv_len * p.head_dim));
  const std::int64_t group = draws.within(1, std::min<std::int64_t>(8, queries));
  queries = std::max<std::int64_t>(1, queries / group);
  p.kv_heads = draws.within(1, std::min<std::int64_t>(2, queries));
  queries = std::max<std::int64_t>(1, queries / p.kv_heads);
  p.heads = group * p.kv_heads;
  p.query_len = 1;
  if (!limits.decode_only && draws.chance(60)) {
    p.query_len = draws.within(1, std::min(limits.most_queries, queries));
  }
}

void draw_numbers(Draws& draws, Problem& p) {
  const auto kind = static_cast<Numbers>(draws.within(0, 4));
  const float spread =
      kind == Numbers::large_range ? std::ldexp(1.0F, static_cast<int>(draws.within(0, 3))) : 1.0F;
  const auto number = [&] {
    if (kind == Numbers::integers) return static_cast<float>(draws.within(-2, 2));
    return draws.gaussian();
  };
  const auto d = static_cast<std::size_t>(p.head_dim);
  const auto kv_len = static_cast<std::size_t>(p.kv_len);
  p.q.resize(static_cast<std::size_t>(p.heads * p.query_len) * d);
  p.k.resize(static_cast<std::size_t>(p.kv_heads) * kv_len * d);
  p.v.resize(p.k.size());
  for (float& x : p.q) x = rounded(p.storage, number() * spread);
  for (std::size_t i = 0; i < p.k.size(); ++i) {
    const std::size_t position = i / d % kv_len;
    float x = number() * spread;
    if (kind == Numbers::cancel && position % 2 == 1) x = -p.k[i - d];
    // Channel 0 of q and k drives the scores up along the keys, or down where the heads are two.
    if (kind == Numbers::growing && i % d == 0) {
      const float height = static_cast<float>(position) / static_cast<float>(kv_len);
      x = (p.kv_heads == 2 ? -20.0F : 20.0F) * height * std::sqrt(static_cast<float>(d));
    }
    p.k[i] = rounded(p.storage, x);
  }
  if (kind == Numbers::growing) {
    for (std::size_t i = 0; i < p.q.size(); i += d) p.q[i] = rounded(p.storage, 1.5F);
  }
  for (std::size_t i = 0; i < p.v.size(); ++i) {
    float x = number();
    if (kind == Numbers::large_range) x *= std::ldexp(1.0F, static_cast<int>(draws.within(-8, 4)));
    if (kind == Numbers::cancel && i / d % 2 == 1) x = -p.v[i - d];
    p.v[i] = rounded(p.storage, x);
  }
}

}  // namespace

Problem random_problem(const Limits& limits, std::uint64_t stream, std::uint64_t index) {
  Draws draws(stream, index);
  Problem p;
  p.storage = draws.one_of(limits.storages);
  draw_sizes(limits, draws, p);
  if (limits.masks) {
    p.causal = draws.chance(70);
    if (draws.chance(25)) p.window = draws.within(1, 200);
  }
  if (limits.soft_cap && draws.chance(20)) {
    constexpr std::array<float, 3> caps{3, 20, 50};
    p.soft_cap = draws.one_of(std::span<const float>(caps));
  }
  if (draws.chance(20)) p.given_scale = std::ldexp(static_cast<float>(draws.within(3, 9)), -5);
  p.batch = draws.chance(40) ? draws.within(1, 6) : 1;
  if (draws.chance(10)) p.batch = draws.within(60, 600);
  if (draws.chance(30)) p.longest_kv_len = p.kv_len + draws.within(0, 1200);
  if (p.batch > 1 && draws.chance(30)) {
    p.kv_lens = {p.kv_len};
    while (std::ssize(p.kv_lens) < p.batch) p.kv_lens.push_back(draws.within(1, p.longest()));
  }
  if (draws.chance(50)) p.multiprocessors = draws.within(1, 132);
  if (limits.splits && draws.chance(30)) p.forced_splits = draws.within(1, 24);
  if (limits.splits && p.forced_splits == 0 && draws.chance(30)) {
    p.split_size = draws.within(12, draws.chance(60) ? 40 : 300);
  }
  p.paged = draws.chance(30);
  constexpr std::array<std::int64_t, 3> pages{8, 16, 32};
  p.page_size = draws.one_of(std::span<const std::int64_t>(pages));
  p.cpu_threads = draws.within(1, 4);
  draw_numbers(draws, p);
  return p;
}

void redraw_numbers(Problem& problem, std::uint64_t stream, std::uint64_t index) {
  Draws draws(stream + 1, index);
  draw_numbers(draws, problem);
}

}  // namespace kvsim::plain
