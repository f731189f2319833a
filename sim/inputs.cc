// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/inputs.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/normal_quantile.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

// The upper half of a Philox stream; the lower half is the head. Values are part of every recorded
// result: append, never renumber.
enum class Stream : std::uint64_t { q = 1, k = 2, v = 3, outlier_rank = 4, outlier_offset = 5 };

std::uint64_t stream_of(Stream purpose, std::int64_t head) {
  return (static_cast<std::uint64_t>(purpose) << 32) | static_cast<std::uint64_t>(head);
}

// A channel of one K head: value = offset + spread · normal.
struct Channel {
  double offset = 0;
  double spread = 1;
};

constexpr std::int64_t channels_per_outlier = 32;
constexpr double smallest_offset = 4;
constexpr double largest_offset = 12;
constexpr double outlier_spread = 1.5;

std::vector<Channel> plain_channels(std::int64_t head_dim) {
  return std::vector<Channel>(static_cast<std::size_t>(head_dim));
}

std::vector<Channel> key_channels(InputKind kind, std::uint64_t seed, std::int64_t head,
                                  std::int64_t head_dim) {
  std::vector<Channel> channels = plain_channels(head_dim);
  if (kind == InputKind::gaussian) return channels;
  for (const std::int64_t channel : outlier_channels(seed, head, head_dim)) {
    const std::uint64_t stream = stream_of(Stream::outlier_offset, head);
    const auto index = static_cast<std::uint64_t>(channel);
    const double size =
        smallest_offset + (largest_offset - smallest_offset) * uniform(seed, stream, 2 * index);
    const bool negative = uniform(seed, stream, 2 * index + 1) < 0.5;
    channels[static_cast<std::size_t>(channel)] = {negative ? -size : size, outlier_spread};
  }
  return channels;
}

void append_head(std::vector<softfloat::Bits>& to, std::uint64_t seed, std::uint64_t stream,
                 std::int64_t positions, const std::vector<Channel>& channels,
                 const softfloat::Format& format) {
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const std::uint64_t index = (static_cast<std::uint64_t>(position) << 32) | c;
      const double value = channels[c].offset + channels[c].spread * normal(seed, stream, index);
      const softfloat::Bits bits = softfloat::from_double(value);
      to.push_back(softfloat::convert(format, softfloat::binary64, bits).bits);
    }
  }
}

}  // namespace

double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return normal_quantile(uniform(seed, stream, index));
}

std::vector<std::int64_t> outlier_channels(std::uint64_t seed, std::int64_t head,
                                           std::int64_t head_dim) {
  // The channels with the smallest draws; equal draws in order of the channel.
  std::vector<std::pair<std::uint64_t, std::int64_t>> ranks;
  for (std::int64_t channel = 0; channel < head_dim; ++channel) {
    const std::uint64_t stream = stream_of(Stream::outlier_rank, head);
    ranks.emplace_back(philox_bits(seed, stream, static_cast<std::uint64_t>(channel)), channel);
  }
  std::sort(ranks.begin(), ranks.end());
  const std::int64_t count = std::max<std::int64_t>(1, head_dim / channels_per_outlier);
  std::vector<std::int64_t> channels;
  channels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < std::min(count, head_dim); ++i) {
    channels.push_back(ranks[static_cast<std::size_t>(i)].second);
  }
  std::sort(channels.begin(), channels.end());
  return channels;
}

AttentionInputs generate_attention(InputKind kind, std::uint64_t seed, const AttentionShape& shape,
                                   const softfloat::Format& format) {
  AttentionInputs inputs{shape, format, {}, {}, {}};
  const std::vector<Channel> plain = plain_channels(shape.head_dim);
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    append_head(inputs.q, seed, stream_of(Stream::q, head), shape.query_len, plain, format);
  }
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    append_head(inputs.k, seed, stream_of(Stream::k, head), shape.kv_len,
                key_channels(kind, seed, head, shape.head_dim), format);
    append_head(inputs.v, seed, stream_of(Stream::v, head), shape.kv_len, plain, format);
  }
  return inputs;
}

}  // namespace kvsim
