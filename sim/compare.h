// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "softfloat/format.h"

/// Results as codes, and what two results have in common: bits, distances, places, classes.
namespace kvsim {

/// The codes of `values`, which must be numbers of `format`, as little-endian bytes, one after the
/// other; the format is 8, 16, 32 or 64 bits wide. A NaN becomes the format's canonical one.
[[nodiscard]] std::vector<std::byte> encode_values(const softfloat::Format& format,
                                                   std::span<const float> values);

/// The values of codes that stand as encode_values() writes them. Exact for every format whose
/// numbers are all floats; a NaN is quiet.
[[nodiscard]] std::vector<float> decode_values(const softfloat::Format& format,
                                               std::span<const std::byte> bytes);

/// The code with that index.
[[nodiscard]] softfloat::Bits code_at(const softfloat::Format& format,
                                      std::span<const std::byte> bytes, std::int64_t index);

/// Steps from one number of a format to another through all the numbers between them. In one binade
/// that is their difference in units in the last place. +0 and −0 are 0 apart; an infinity stands
/// one step behind the largest number. Nothing where one of them is NaN.
[[nodiscard]] std::optional<std::uint64_t> ulp_distance(const softfloat::Format& format,
                                                        softfloat::Bits a, softfloat::Bits b);

/// When two NaN are the same result: always, as most kernels say nothing about sign and payload, or
/// only with equal bits.
enum class NanEquality : std::uint8_t { always, equal_bits };

/// Whether two codes are the same result: equal bits, or two NaN that `nan` lets pass.
[[nodiscard]] bool same_result(const softfloat::Format& format, softfloat::Bits a,
                               softfloat::Bits b, NanEquality nan = NanEquality::always);

/// How far two tensors of one format lie apart.
struct Comparison {
  std::int64_t elements = 0;
  std::int64_t different = 0;     ///< elements that are not the same result
  std::int64_t first = -1;        ///< index of the first of them; −1: none
  std::int64_t not_a_number = 0;  ///< those of `different` without a distance: one or both are NaN
  std::uint64_t max_ulp = 0;      ///< largest distance
  std::int64_t farthest = -1;     ///< index of the first element with it; −1: none differs
  double mean_ulp = 0;            ///< mean distance of all elements that have one
};

/// Compares two tensors of the same size, as bytes of codes.
[[nodiscard]] Comparison compare_codes(const softfloat::Format& format,
                                       std::span<const std::byte> a, std::span<const std::byte> b,
                                       NanEquality nan = NanEquality::always);

/// The largest |a − b| of two tensors whose rows have `row_length` elements, in units in the last
/// place of the largest finite number that either of them has in that row. Beside a sum that
/// cancels, ulp_distance() counts every number down to zero; this does not. Elements that are not
/// finite in both are passed over.
[[nodiscard]] double max_row_ulp(const softfloat::Format& format, std::span<const std::byte> a,
                                 std::span<const std::byte> b, std::int64_t row_length);

/// Consecutive indices, both ends included.
struct IndexRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// Heads whose differing elements stand at the same positions.
struct MismatchGroup {
  std::vector<IndexRange> heads;
  std::vector<IndexRange> positions;  ///< with at least one differing element in each of the heads
  std::int64_t different = 0;         ///< elements, of all these heads together

  friend bool operator==(const MismatchGroup&, const MismatchGroup&) = default;
};

/// Where two tensors [heads, positions, width] differ, by head and position: groups in the order of
/// their first heads; heads without a difference stand in none. The sizes are those of the tensors;
/// the width follows from them.
[[nodiscard]] std::vector<MismatchGroup> mismatch_map(const softfloat::Format& format,
                                                      std::span<const std::byte> a,
                                                      std::span<const std::byte> b,
                                                      std::int64_t heads, std::int64_t positions,
                                                      NanEquality nan = NanEquality::always);

/// "0-3, 7, 9-12": ranges for people; at most `most` of them, then how many there are.
[[nodiscard]] std::string range_text(std::span<const IndexRange> ranges, std::size_t most);

/// One result among several.
struct CodedResult {
  softfloat::Format format;
  std::span<const std::byte> bytes;
};

/// For each result the number of its bit-equality class: results in one class have the same format
/// and the same bits. Classes are numbered 0, 1, … in the order of their first members.
[[nodiscard]] std::vector<std::size_t> equality_classes(std::span<const CodedResult> results);

}  // namespace kvsim
