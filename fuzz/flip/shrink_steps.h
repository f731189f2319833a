// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>

#include "fuzz/flip/case.h"

/// The ways in which a case becomes smaller.
namespace kvsim::fuzz {

/// What a case has fewer of.
enum class CaseAxis : std::uint8_t {
  terms,        ///< of a sum
  keys,         ///< of attention, in every K/V head
  dimensions,   ///< elements of every head; q is scaled, so that scores keep their scale
  group_heads,  ///< query heads of each group
  kv_heads,     ///< with their query heads
};

/// How many there are along the axis; 0 where the kind has no such axis.
[[nodiscard]] std::int64_t length_along(const CaseShape& shape, CaseAxis axis);

/// A part of an axis, or of a tensor.
struct CasePart {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// The case without that part of the axis, which is not all of it.
[[nodiscard]] FlipCase without(const FlipCase& flip_case, CaseAxis axis, const CasePart& part);

inline constexpr CaseAxis all_axes[] = {CaseAxis::terms, CaseAxis::kv_heads, CaseAxis::group_heads,
                                        CaseAxis::keys, CaseAxis::dimensions};

/// x cut to a number of significant bits, toward 0, so that it stays in every range.
[[nodiscard]] float cut_to_bits(float x, int bits);

/// The case with a part of a tensor cut to at most that many bits each.
[[nodiscard]] FlipCase with_fewer_bits(const FlipCase& flip_case, CaseTensor tensor,
                                       const CasePart& part, int bits);

/// The same with every number in a part of an axis, of all tensors that have it.
[[nodiscard]] FlipCase with_fewer_bits(const FlipCase& flip_case, CaseAxis axis,
                                       const CasePart& part, int bits);

/// The shape with that many parts in the path: of the first split in its order that has more, or of
/// the kernel.
[[nodiscard]] CaseShape with_splits(const CaseShape& shape, std::size_t path, std::int64_t splits);

}  // namespace kvsim::fuzz
