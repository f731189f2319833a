// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/kv_cache.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "sim/decoder/codes.h"
#include "sim/decoder/number_digest.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

constexpr std::int64_t least_capacity = 64;

/// One element type's copy loops; the compiler sees through the conversions.
template <class To, class From>
void convert(const From* from, std::int64_t count, To* to, const softfloat::Format& format) {
  if constexpr (std::is_same_v<From, std::uint16_t>) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<To>(decoder::code_to_float(format, from[i]));
    }
  } else if constexpr (std::is_same_v<To, std::uint16_t>) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = decoder::float_to_code(format, static_cast<float>(from[i]));
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
  }
}

}  // namespace

KvCache::KvCache(std::int64_t layers, std::int64_t kv_heads, std::int64_t head_dim,
                 const softfloat::Format& format)
    : layers_(layers), kv_heads_(kv_heads), head_dim_(head_dim), format_(format) {
  Numbers none = std::vector<float>();
  if (format == softfloat::bfloat16 || format == softfloat::binary16) {
    none = std::vector<std::uint16_t>();
  } else if (format == softfloat::binary64) {
    none = std::vector<double>();
  }
  numbers_.assign(index(2 * layers), none);
}

void KvCache::truncate(std::int64_t rows) { rows_ = std::clamp<std::int64_t>(rows, 0, rows_); }

void KvCache::extend(std::int64_t rows) {
  if (rows <= rows_) return;
  const std::int64_t before = capacity_;
  if (rows > capacity_) capacity_ = std::max({rows, 2 * capacity_, least_capacity});
  for (Numbers& all : numbers_) {
    std::visit(
        [&]<class T>(std::vector<T>& numbers) {
          if (capacity_ != before) {
            std::vector<T> larger(index(kv_heads_ * capacity_ * head_dim_));
            for (std::int64_t head = 0; head < kv_heads_; ++head) {
              std::copy_n(numbers.data() + head * before * head_dim_, rows_ * head_dim_,
                          larger.data() + head * capacity_ * head_dim_);
            }
            numbers = std::move(larger);
          } else {
            for (std::int64_t head = 0; head < kv_heads_; ++head) {
              std::fill_n(numbers.data() + (head * capacity_ + rows_) * head_dim_,
                          (rows - rows_) * head_dim_, T{});
            }
          }
        },
        all);
  }
  rows_ = rows;
}

template <class T>
void KvCache::write_numbers(std::int64_t layer, KvPart part, std::int64_t first,
                            std::span<const T> values) {
  const std::int64_t count = static_cast<std::int64_t>(values.size()) / (kv_heads_ * head_dim_);
  std::visit(
      [&](auto& stored) {
        for (std::int64_t i = 0; i < count; ++i) {
          for (std::int64_t head = 0; head < kv_heads_; ++head) {
            convert(values.data() + (i * kv_heads_ + head) * head_dim_, head_dim_,
                    stored.data() + (head * capacity_ + first + i) * head_dim_, format_);
          }
        }
      },
      numbers(layer, part));
}

void KvCache::write(std::int64_t layer, KvPart part, std::int64_t first,
                    std::span<const float> values) {
  write_numbers(layer, part, first, values);
}
void KvCache::write(std::int64_t layer, KvPart part, std::int64_t first,
                    std::span<const double> values) {
  write_numbers(layer, part, first, values);
}

template <class T>
std::vector<T> KvCache::read_numbers(std::int64_t layer, KvPart part, std::int64_t first,
                                     std::int64_t count) const {
  std::vector<T> result(index(kv_heads_ * count * head_dim_));
  std::visit(
      [&](const auto& stored) {
        for (std::int64_t head = 0; head < kv_heads_; ++head) {
          convert(stored.data() + (head * capacity_ + first) * head_dim_, count * head_dim_,
                  result.data() + head * count * head_dim_, format_);
        }
      },
      numbers(layer, part));
  return result;
}

std::vector<float> KvCache::read(std::int64_t layer, KvPart part, std::int64_t first,
                                 std::int64_t count) const {
  return read_numbers<float>(layer, part, first, count);
}
std::vector<double> KvCache::read_double(std::int64_t layer, KvPart part, std::int64_t first,
                                         std::int64_t count) const {
  return read_numbers<double>(layer, part, first, count);
}

NumberPointer KvCache::numbers_of(std::int64_t layer, KvPart part) const {
  const Numbers& all = numbers(layer, part);
  if (const auto* codes = std::get_if<std::vector<std::uint16_t>>(&all)) {
    return {format_ == softfloat::bfloat16 ? NumberCode::bfloat16 : NumberCode::binary16,
            codes->data()};
  }
  const auto* floats = std::get_if<std::vector<float>>(&all);
  return floats == nullptr ? NumberPointer() : NumberPointer(floats->data());
}

std::string KvCache::digest(std::int64_t layer, KvPart part, std::int64_t head,
                            std::int64_t position) const {
  return std::visit(
      [&](const auto& stored) {
        const auto* row = stored.data() + (head * capacity_ + position) * head_dim_;
        std::vector<double> values(index(head_dim_));
        convert(row, head_dim_, values.data(), format_);
        return decoder::number_digest(values, format_ == softfloat::binary64);
      },
      numbers(layer, part));
}

}  // namespace kvsim
