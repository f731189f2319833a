// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/engine/numbers.h"
#include "softfloat/format.h"

namespace kvsim {

/// Which half of a cache.
enum class KvPart : std::uint8_t { key, value };

/// Keys and values of one sequence in every layer: for each layer and part
/// [kv_heads][capacity][head_dim], in the cache's format. Copying a cache saves it; assigning the
/// copy restores it.
class KvCache {
 public:
  KvCache() = default;
  /// Empty. Numbers are kept as 16-bit codes in bfloat16 and binary16, as doubles in binary64, and
  /// as floats in every other format.
  KvCache(std::int64_t layers, std::int64_t kv_heads, std::int64_t head_dim,
          const softfloat::Format& format);

  [[nodiscard]] std::int64_t layers() const { return layers_; }
  [[nodiscard]] std::int64_t kv_heads() const { return kv_heads_; }
  [[nodiscard]] std::int64_t head_dim() const { return head_dim_; }
  [[nodiscard]] const softfloat::Format& format() const { return format_; }
  /// Positions held.
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  /// Forgets the rows from `rows` on; does nothing where there are fewer.
  void truncate(std::int64_t rows);

  /// Makes room for `rows` rows and says that so many are held. New rows are zeros until written.
  void extend(std::int64_t rows);

  /// Writes rows first … of one layer and part: `values` is [rows][kv_heads][head_dim], numbers of
  /// the format. The rows must be held.
  void write(std::int64_t layer, KvPart part, std::int64_t first, std::span<const float> values);
  void write(std::int64_t layer, KvPart part, std::int64_t first, std::span<const double> values);

  /// Row 0 of head 0 of one layer and part, as the engine reads it; the next head is
  /// capacity() · head_dim() numbers further. Null in binary64. Valid until rows are added.
  [[nodiscard]] NumberPointer numbers_of(std::int64_t layer, KvPart part) const;

  /// Rows first … first + count − 1 as [kv_heads][count][head_dim]; exact.
  [[nodiscard]] std::vector<float> read(std::int64_t layer, KvPart part, std::int64_t first,
                                        std::int64_t count) const;
  [[nodiscard]] std::vector<double> read_double(std::int64_t layer, KvPart part, std::int64_t first,
                                                std::int64_t count) const;

  /// The first 16 hexadecimal digits of the SHA-256 of one row's numbers as floats, little-endian,
  /// every NaN 0x7fc00000; in binary64 of the doubles.
  [[nodiscard]] std::string digest(std::int64_t layer, KvPart part, std::int64_t head,
                                   std::int64_t position) const;

 private:
  using Numbers = std::variant<std::vector<float>, std::vector<std::uint16_t>, std::vector<double>>;

  [[nodiscard]] Numbers& numbers(std::int64_t layer, KvPart part) {
    return numbers_[static_cast<std::size_t>(2 * layer + (part == KvPart::value ? 1 : 0))];
  }
  [[nodiscard]] const Numbers& numbers(std::int64_t layer, KvPart part) const {
    return numbers_[static_cast<std::size_t>(2 * layer + (part == KvPart::value ? 1 : 0))];
  }
  template <class T>
  void write_numbers(std::int64_t layer, KvPart part, std::int64_t first,
                     std::span<const T> values);
  template <class T>
  [[nodiscard]] std::vector<T> read_numbers(std::int64_t layer, KvPart part, std::int64_t first,
                                            std::int64_t count) const;

  std::int64_t layers_ = 0;
  std::int64_t kv_heads_ = 0;
  std::int64_t head_dim_ = 0;
  softfloat::Format format_;
  std::int64_t rows_ = 0;
  std::int64_t capacity_ = 0;
  std::vector<Numbers> numbers_;  // keys and values of layer 0, then of layer 1, …
};

}  // namespace kvsim
