// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/ulp.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

std::size_t byte_width(const Format& format) {
  return static_cast<std::size_t>(format.width()) / 8;
}

Bits load(std::span<const std::byte> bytes, std::size_t index, std::size_t width) {
  Bits bits = 0;
  for (std::size_t byte = width; byte > 0; --byte) {
    bits = bits << 8 | std::to_integer<Bits>(bytes[index * width + byte - 1]);
  }
  return bits;
}

void store(std::span<std::byte> bytes, std::size_t index, std::size_t width, Bits bits) {
  for (std::size_t byte = 0; byte < width; ++byte) {
    bytes[index * width + byte] = static_cast<std::byte>(bits >> (8 * byte) & 0xff);
  }
}

/// Calls different(index, bits of a, bits of b) for every element that is not the same result.
template <class Different>
void for_each_difference(const Format& format, std::span<const std::byte> a,
                         std::span<const std::byte> b, NanEquality nan,
                         const Different& different) {
  const std::size_t width = byte_width(format);
  const std::size_t count = a.size() / width;
  // Equal stretches, the usual case, are skipped without decoding.
  constexpr std::size_t stretch = 512;
  for (std::size_t first = 0; first < count; first += stretch) {
    const std::size_t last = std::min(count, first + stretch);
    const std::size_t length = (last - first) * width;
    if (std::memcmp(a.data() + first * width, b.data() + first * width, length) == 0) continue;
    for (std::size_t i = first; i < last; ++i) {
      const Bits x = load(a, i, width);
      const Bits y = load(b, i, width);
      if (!same_result(format, x, y, nan)) different(i, x, y);
    }
  }
}

void append(std::vector<IndexRange>& ranges, std::int64_t index) {
  if (!ranges.empty() && ranges.back().last + 1 == index) {
    ranges.back().last = index;
  } else if (ranges.empty() || ranges.back().last != index) {
    ranges.push_back({index, index});
  }
}

}  // namespace

std::vector<std::byte> encode_values(const Format& format, std::span<const float> values) {
  const std::size_t width = byte_width(format);
  std::vector<std::byte> bytes(values.size() * width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bits single = softfloat::from_float(values[i]);
    const bool as_is = format == softfloat::binary32 && !softfloat::is_nan(format, single);
    store(bytes, i, width,
          as_is ? single : softfloat::convert(format, softfloat::binary32, single).bits);
  }
  return bytes;
}

std::vector<float> decode_values(const Format& format, std::span<const std::byte> bytes) {
  const std::size_t width = byte_width(format);
  std::vector<float> values(bytes.size() / width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = softfloat::to_float(format, load(bytes, i, width));
  }
  return values;
}

Bits code_at(const Format& format, std::span<const std::byte> bytes, std::int64_t index) {
  return load(bytes, static_cast<std::size_t>(index), byte_width(format));
}

std::optional<std::uint64_t> ulp_distance(const Format& format, Bits a, Bits b) {
  if (softfloat::is_nan(format, a) || softfloat::is_nan(format, b)) return std::nullopt;
  const Bits x = a & format.magnitude_mask();
  const Bits y = b & format.magnitude_mask();
  const bool same_side = (a & format.sign_bit()) == (b & format.sign_bit());
  return same_side ? std::max(x, y) - std::min(x, y) : x + y;
}

bool same_result(const Format& format, Bits a, Bits b, NanEquality nan) {
  return a == b || (nan == NanEquality::always && softfloat::is_nan(format, a) &&
                    softfloat::is_nan(format, b));
}

Comparison compare_codes(const Format& format, std::span<const std::byte> a,
                         std::span<const std::byte> b, NanEquality nan) {
  Comparison out;
  out.elements = static_cast<std::int64_t>(a.size() / byte_width(format));
  double total = 0;
  for_each_difference(format, a, b, nan, [&](std::size_t i, Bits x, Bits y) {
    const auto index = static_cast<std::int64_t>(i);
    if (out.different++ == 0) out.first = index;
    const std::optional<std::uint64_t> distance = ulp_distance(format, x, y);
    if (!distance) {
      ++out.not_a_number;
      return;
    }
    total += static_cast<double>(*distance);
    if (out.farthest == -1 || *distance > out.max_ulp) {
      out.max_ulp = *distance;
      out.farthest = index;
    }
  });
  const std::int64_t measured = out.elements - out.not_a_number;
  if (measured > 0) out.mean_ulp = total / static_cast<double>(measured);
  return out;
}

double max_row_ulp(const Format& format, std::span<const std::byte> a, std::span<const std::byte> b,
                   std::int64_t row_length) {
  const std::size_t width = byte_width(format);
  const std::size_t row_bytes = static_cast<std::size_t>(row_length) * width;
  double out = 0;
  for (std::size_t at = 0; at + row_bytes <= a.size(); at += row_bytes) {
    if (std::memcmp(a.data() + at, b.data() + at, row_bytes) == 0) continue;
    double largest = 0;
    double farthest = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(row_length); ++i) {
      const double x = softfloat::to_double(format, load(a.subspan(at), i, width));
      const double y = softfloat::to_double(format, load(b.subspan(at), i, width));
      for (const double value : {x, y}) {
        if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
      }
      if (std::isfinite(x) && std::isfinite(y)) farthest = std::max(farthest, std::fabs(x - y));
    }
    out = std::max(out, std::ldexp(farthest, -ulp_exponent(format, largest)));
  }
  return out;
}

std::vector<MismatchGroup> mismatch_map(const Format& format, std::span<const std::byte> a,
                                        std::span<const std::byte> b, std::int64_t heads,
                                        std::int64_t positions, NanEquality nan) {
  std::vector<MismatchGroup> groups;
  const auto rows = static_cast<std::size_t>(heads * positions);
  if (rows == 0) return groups;
  const std::size_t row_bytes = a.size() / rows;
  for (std::int64_t head = 0; head < heads; ++head) {
    MismatchGroup found;
    for (std::int64_t position = 0; position < positions; ++position) {
      const std::size_t at = static_cast<std::size_t>(head * positions + position) * row_bytes;
      for_each_difference(format, a.subspan(at, row_bytes), b.subspan(at, row_bytes), nan,
                          [&](std::size_t, Bits, Bits) {
                            ++found.different;
                            append(found.positions, position);
                          });
    }
    if (found.different == 0) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const MismatchGroup& group) {
      return group.positions == found.positions;
    });
    if (same == groups.end()) {
      found.heads = {{head, head}};
      groups.push_back(std::move(found));
    } else {
      append(same->heads, head);
      same->different += found.different;
    }
  }
  return groups;
}

std::string range_text(std::span<const IndexRange> ranges, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < ranges.size() && i < most; ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("{}", ranges[i].first);
    if (ranges[i].last != ranges[i].first) text += fmt::format("-{}", ranges[i].last);
  }
  if (ranges.size() > most) {
    text += fmt::format(" … {} ({} ranges)", ranges.back().last, ranges.size());
  }
  return text;
}

std::vector<std::size_t> equality_classes(std::span<const CodedResult> results) {
  std::vector<std::size_t> classes;
  std::vector<std::size_t> first_members;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto same =
        std::find_if(first_members.begin(), first_members.end(), [&](std::size_t other) {
          return results[i].format == results[other].format &&
                 std::ranges::equal(results[i].bytes, results[other].bytes);
        });
    classes.push_back(static_cast<std::size_t>(same - first_members.begin()));
    if (same == first_members.end()) first_members.push_back(i);
  }
  return classes;
}

}  // namespace kvsim
