// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <type_traits>

/// Faults that are planted on purpose, to see that the properties of fuzz/property find them. They
/// are there only in a build with KVSIM_MUTANTS, which is for tests; in every other build
/// mutant_is_on() is the constant false. Defects of a decoder are plants (sim/decoder/plants.h).
namespace kvsim {

/// The faults; fuzz/property/mutants.cc says what each one does.
enum class Mutant : std::uint8_t {
  none,
  // softfloat
  ties_away,
  sticky_bit_lost,
  largest_overflows,
  subnormals_flushed,
  product_rounded_in_fma,
  high_product_bits_lost,
  fewer_bits_aligned,
  aligned_terms_floored,
  aligned_to_one,
  bit_dropped_in_turn,
  exp_truncated,
  // units
  addend_forgotten,
  pairs_of_four_in_turn,
  floor_toward_zero,
  engine_keeps_fewer_bits,
  // orders
  short_parts,
  equal_halves,
  butterfly_is_pairwise,
  exact_terms_rounded,
  tree_is_not_fused,
  lane_tail_lost,
  engine_is_not_fused,
  // attention
  one_key_too_many,
  window_too_wide,
  no_rescaling,
  equal_split_weights,
  heads_interleaved,
  row_sum_part_lost,
  scale_not_rooted,
  threads_change_scale,
  empty_splits_count,
  // decoder and runs
  rows_always_kept,
  passes_are_counted,
  patched_heads_in_turn,
  patches_miss_last_row,
  prompts_share_numbers,
  divergence_not_balanced,
  largest_taken_off_twice,
  // parsers and printers
  short_decimal,
  decimal_rest_lost,
  multiple_not_written,
  negative_zero_lost,
  record_digits_cut,
  tensor_shape_reversed,
  label_lost,
  unit_option_lost,
  newline_lost,
};

#ifdef KVSIM_MUTANTS
inline constexpr bool has_mutants = true;
/// The one that is on; set while no thread computes.
inline Mutant current_mutant = Mutant::none;
#else
inline constexpr bool has_mutants = false;
#endif

/// Whether that fault is on. Constant expressions never have one.
[[nodiscard]] constexpr bool mutant_is_on([[maybe_unused]] Mutant mutant) {
#ifdef KVSIM_MUTANTS
  if (std::is_constant_evaluated()) return false;
  return current_mutant == mutant;
#else
  return false;
#endif
}

}  // namespace kvsim
