// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/attention/plain/online_splits.h"

#include <algorithm>
#include <cmath>

namespace kvsim::plain {
namespace {

bool counts_as_causal(const Problem& p) { return p.causal && p.query_len > 1; }

std::int64_t multiprocessors(const OnlineKernel& kernel, const Problem& p) {
  return p.multiprocessors > 0 ? p.multiprocessors : kernel.multiprocessors;
}

// FlashAttention-2 and -3: the fewest splits that reach 85 % of the best wave efficiency.
std::int64_t by_waves(std::int64_t work, std::int64_t slots, std::int64_t blocks,
                      bool only_eligible) {
  const std::int64_t most = std::min<std::int64_t>({128, slots, blocks});
  const auto eligible = [&](std::int64_t s) {
    return !only_eligible || s == 1 || ceil_div(blocks, s) != ceil_div(blocks, s - 1);
  };
  const auto efficiency = [&](std::int64_t s) {
    const float waves = static_cast<float>(work * s) / static_cast<float>(slots);
    return waves / std::ceil(waves);
  };
  float best = 0;
  for (std::int64_t s = 1; s <= most; ++s) {
    if (eligible(s)) best = std::max(best, efficiency(s));
  }
  for (std::int64_t s = 1; s <= most; ++s) {
    if (eligible(s) && static_cast<double>(efficiency(s)) >= 0.85 * static_cast<double>(best)) {
      return s;
    }
  }
  return 1;
}

bool fills(std::int64_t work, std::int64_t slots) {
  return static_cast<float>(work) >= 0.8F * static_cast<float>(slots);
}

std::int64_t fa2_splits(const OnlineKernel& kernel, const Problem& p) {
  const std::int64_t blocks = ceil_div(p.longest(), tile_columns(Tiling::fa2, p, true));
  const bool packs = p.query_len == 1 && p.group() > 1 && p.window == 0 && p.head_dim % 8 == 0;
  const std::int64_t rows = packs ? p.group() : p.query_len;
  const std::int64_t heads = packs ? p.kv_heads : p.heads;
  const std::int64_t work = p.batch * heads * ceil_div(rows, 64);
  const std::int64_t slots = 2 * multiprocessors(kernel, p);
  return fills(work, slots) ? 1 : by_waves(work, slots, blocks, true);
}

std::int64_t packed_tile_rows(Tiling tiling, const Problem& p) {
  if (tiling == Tiling::fa3) return p.head_dim <= 96 ? 192 : 128;
  return p.query_len * p.group() <= 128 ? 128 : 256;
}

std::int64_t loaded_blocks(Tiling tiling, const Problem& p, std::int64_t rows) {
  const std::int64_t loaded = p.window > 0 ? std::min(p.longest(), p.window + rows) : p.longest();
  return ceil_div(loaded, tile_columns(tiling, p, true));
}

std::int64_t fa3_splits(const OnlineKernel& kernel, const Problem& p) {
  const std::int64_t tile = packed_tile_rows(Tiling::fa3, p);
  const std::int64_t blocks = loaded_blocks(Tiling::fa3, p, tile);
  const std::int64_t work = p.batch * p.kv_heads * ceil_div(p.query_len * p.group(), tile);
  const std::int64_t slots = multiprocessors(kernel, p);
  if (fills(work, slots) || blocks <= 4) return 1;
  return by_waves(work, slots, blocks, false);
}

std::int64_t fa4_splits(const OnlineKernel& kernel, const Problem& p) {
  const std::int64_t tile = packed_tile_rows(Tiling::fa4, p);
  const std::int64_t blocks = loaded_blocks(Tiling::fa4, p, 128);
  if (blocks <= 4) return 1;
  const std::int64_t work = p.batch * p.kv_heads * ceil_div(p.query_len * p.group(), tile);
  const std::int64_t fitting = std::max<std::int64_t>(1, multiprocessors(kernel, p) / work);
  return std::min<std::int64_t>({fitting, blocks, 128});
}

std::int64_t flashinfer_chunk(const OnlineKernel& kernel, const Problem& p) {
  const std::int64_t unit = p.paged ? p.page_size : 1;
  const std::int64_t longest = ceil_div(p.longest(), unit);
  const std::int64_t rows = p.query_len * p.group();
  std::int64_t tile = 16;
  if (rows > 16) tile = 64;
  if (rows > 64 && p.head_dim < 256) tile = 128;
  const std::int64_t most = std::max<std::int64_t>(1, 2 * multiprocessors(kernel, p) / p.kv_heads);
  std::int64_t chunk = std::max<std::int64_t>(1, 128 / unit);
  // Linear instead of binary: what is searched falls as the chunk grows.
  while (chunk < longest && p.batch * ceil_div(rows, tile) * ceil_div(longest, chunk) > most) {
    ++chunk;
  }
  return chunk * unit;
}

}  // namespace

std::int64_t tile_columns(Tiling tiling, const Problem& p, bool split) {
  const std::int64_t d = p.head_dim;
  const bool windowed = p.window > 0;
  switch (tiling) {
    case Tiling::fa2:
      if (d <= 64) return split ? 256 : 128;
      return d <= 128 && split ? 128 : 64;
    case Tiling::fa3:
      if (d <= 64) return counts_as_causal(p) || windowed || p.paged ? 128 : 192;
      if (d <= 96) return windowed || p.paged ? 128 : 144;
      if (d <= 128) return counts_as_causal(p) || windowed || p.paged ? 128 : 176;
      if (d <= 192) return windowed || p.paged ? 96 : 112;
      return windowed ? 64 : 80;
    case Tiling::fa4:
      return 128;
    case Tiling::flashinfer:
      return d <= 128 ? 64 : 32;
    case Tiling::mi300:
    case Tiling::llama_cuda:
      break;
  }
  return 64;
}

namespace {

std::int64_t launch_splits(const OnlineKernel& kernel, const Problem& p) {
  if (kernel.tiling == Tiling::mi300 || kernel.tiling == Tiling::llama_cuda) return 1;
  if (p.forced_splits > 0) return p.forced_splits;
  if (p.split_size > 0) return ceil_div(p.longest(), p.split_size);
  switch (kernel.tiling) {
    case Tiling::fa2:
      return fa2_splits(kernel, p);
    case Tiling::fa3:
      return fa3_splits(kernel, p);
    case Tiling::fa4:
      return fa4_splits(kernel, p);
    default:
      return ceil_div(p.longest(), flashinfer_chunk(kernel, p));
  }
}

}  // namespace

std::int64_t number_of_splits(const OnlineKernel& kernel, const Problem& p) {
  if (kernel.tiling != Tiling::fa3 || p.kv_lens.empty() || p.split_size > 0) {
    return launch_splits(kernel, p);
  }
  Problem alone = p;
  alone.batch = 1;
  const std::int64_t most = launch_splits(kernel, alone);
  const std::int64_t columns = tile_columns(kernel.tiling, p, true);
  const std::int64_t rows = p.query_len * p.group();
  const std::int64_t tiles = ceil_div(rows, packed_tile_rows(kernel.tiling, p));
  std::int64_t total = 0;
  for (const std::int64_t length : p.kv_lens) total += tiles * ceil_div(length, columns);
  const float with_margin = static_cast<float>(total) * 1.1F;
  const float of_all_heads = with_margin * static_cast<float>(p.kv_heads);
  const float share = of_all_heads / static_cast<float>(multiprocessors(kernel, p));
  const auto each = static_cast<std::int64_t>(std::ceil(share));
  const std::int64_t wanted = ceil_div(ceil_div(p.kv_len, columns), each);
  return std::max<std::int64_t>(1, std::min(wanted, most));
}

KeyRange split_range(const OnlineKernel& kernel, const Problem& p, std::int64_t splits,
                     std::int64_t s, std::int64_t head, std::int64_t i) {
  const auto clipped = [&](std::int64_t first, std::int64_t last) {
    return KeyRange{std::min(first, p.kv_len), std::min(last, p.kv_len)};
  };
  if (p.forced_splits == 0 && p.split_size > 0) {
    return clipped(s * p.split_size, (s + 1) * p.split_size);
  }
  const std::int64_t columns = tile_columns(kernel.tiling, p, true);
  if (kernel.tiling == Tiling::fa2) {
    const std::int64_t size = ceil_div(ceil_div(p.longest(), columns), splits) * columns;
    return clipped(s * size, (s + 1) * size);
  }
  if (kernel.tiling == Tiling::flashinfer) {
    const std::int64_t size =
        p.forced_splits > 0 ? ceil_div(p.longest(), p.forced_splits) : flashinfer_chunk(kernel, p);
    return clipped(s * size, (s + 1) * size);
  }
  const std::int64_t rows = packed_tile_rows(kernel.tiling, p);
  const std::int64_t tile = (i * p.group() + head % p.group()) / rows;
  const std::int64_t first_query = tile * rows / p.group();
  const std::int64_t last_query = ((tile + 1) * rows - 1) / p.group();
  const std::int64_t before = p.kv_len - p.query_len;
  std::int64_t end = ceil_div(p.kv_len, columns);
  if (p.causal) {
    const std::int64_t keys = std::max<std::int64_t>(0, last_query + 1 + before);
    end = std::min(end, ceil_div(keys, columns));
  }
  std::int64_t begin = 0;
  if (p.window > 0) {
    begin = std::max<std::int64_t>(0, first_query + before - (p.window - 1)) / columns;
  }
  if (end <= begin) return {0, 0};
  const std::int64_t share = ceil_div(end - begin, splits);
  const std::int64_t first = begin + s * share;
  const std::int64_t last = std::min(first + share, end);
  if (last <= first) return {0, 0};
  return clipped(first * columns, last * columns);
}

}  // namespace kvsim::plain
