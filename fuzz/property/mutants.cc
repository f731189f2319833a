// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/mutants.h"

#include <array>

namespace kvsim::fuzz {
namespace {

constexpr MutantRow fault(Mutant mutant, std::string_view name, std::string_view area,
                          std::string_view does, std::string_view killed_by) {
  return {mutant, Plant::none, name, area, does, killed_by};
}
constexpr MutantRow plant(Plant which, std::string_view name, std::string_view does,
                          std::string_view killed_by) {
  return {Mutant::none, which, name, "decoder", does, killed_by};
}

constexpr auto table = std::to_array<MutantRow>({
    fault(Mutant::ties_away, "ties-away", "softfloat", "ties to even go away from zero",
          "operations-round-once"),
    fault(Mutant::ties_away, "ties-away", "softfloat", "ties to even go away from zero",
          "conversions-round-once"),
    fault(Mutant::sticky_bit_lost, "sticky-bit-lost", "softfloat",
          "bits that are shifted out leave no trace", "operations-round-once"),
    fault(Mutant::largest_overflows, "largest-overflows", "softfloat",
          "the largest finite result becomes infinite", "operations-round-once"),
    fault(Mutant::subnormals_flushed, "subnormals-flushed", "softfloat",
          "subnormal results become zero", "operations-round-once"),
    fault(Mutant::product_rounded_in_fma, "product-rounded-in-fma", "softfloat",
          "fma rounds its product first", "operations-round-once"),
    fault(Mutant::exp_truncated, "exp-truncated", "softfloat", "e^x is rounded toward zero",
          "exp-rounds-once"),
    fault(Mutant::high_product_bits_lost, "high-product-bits-lost", "softfloat",
          "the exact accumulator drops the upper bits of a product", "exact-sums-have-no-order"),
    fault(Mutant::fewer_bits_aligned, "fewer-bits-aligned", "softfloat",
          "a fused sum keeps one bit fewer", "unit-engine-is-reference"),
    fault(Mutant::aligned_terms_floored, "aligned-terms-floored", "softfloat",
          "aligned terms are rounded down instead of toward zero", "signs-are-symmetric"),
    fault(Mutant::aligned_to_one, "aligned-to-one", "softfloat",
          "terms of a fused sum are aligned to 1 where all are smaller", "powers-of-two-scale"),
    fault(Mutant::bit_dropped_in_turn, "bit-dropped-in-turn", "softfloat",
          "a fused sum drops its last bit after each term", "blocks-have-no-order"),

    fault(Mutant::fewer_bits_aligned, "fewer-bits-aligned", "units",
          "a fused sum keeps one bit fewer", "one-more-bit-is-seen"),
    fault(Mutant::addend_forgotten, "addend-forgotten", "units",
          "an instruction starts from c, not from the result before it", "whole-numbers-are-exact"),
    fault(Mutant::addend_forgotten, "addend-forgotten", "units",
          "an instruction starts from c, not from the result before it", "zeros-change-nothing"),
    fault(Mutant::pairs_of_four_in_turn, "pairs-of-four-in-turn", "units",
          "blocks of emulated 8-bit units take k in turn", "unit-engine-is-reference"),
    fault(Mutant::floor_toward_zero, "floor-toward-zero", "units",
          "CDNA3's sums are rounded toward zero instead of down", "unit-engine-is-reference"),
    fault(Mutant::engine_keeps_fewer_bits, "engine-keeps-fewer-bits", "units",
          "vector code of a matrix unit keeps one bit fewer", "unit-engine-is-reference"),
    fault(Mutant::ties_away, "ties-away", "units", "ties to even go away from zero",
          "wide-alignment-is-exact"),

    fault(Mutant::short_parts, "short-parts", "orders", "parts of a split are rounded down",
          "orders-are-their-definitions"),
    fault(Mutant::equal_halves, "equal-halves", "orders", "pairwise cuts in the middle",
          "orders-are-their-definitions"),
    fault(Mutant::butterfly_is_pairwise, "butterfly-is-pairwise", "orders",
          "a butterfly joins neighbours first", "orders-are-their-definitions"),
    fault(Mutant::exact_terms_rounded, "exact-terms-rounded", "orders",
          "an exact sum rounds its products", "exact-sums-have-no-order"),
    fault(Mutant::tree_is_not_fused, "tree-is-not-fused", "orders",
          "a tree rounds products that its order fuses", "trees-are-their-orders"),
    fault(Mutant::lane_tail_lost, "lane-tail-lost", "orders",
          "terms behind the last whole row of lanes are lost", "whole-numbers-are-exact"),
    fault(Mutant::lane_tail_lost, "lane-tail-lost", "orders",
          "terms behind the last whole row of lanes are lost", "sums-keep-their-bounds"),
    fault(Mutant::engine_is_not_fused, "engine-is-not-fused", "orders",
          "vector code rounds fused products", "engine-is-reference"),

    fault(Mutant::one_key_too_many, "one-key-too-many", "attention",
          "a causal query sees the next key", "hidden-keys-change-nothing"),
    fault(Mutant::window_too_wide, "window-too-wide", "attention", "a window has one key too many",
          "hidden-keys-change-nothing"),
    fault(Mutant::no_rescaling, "no-rescaling", "attention",
          "a new maximum does not rescale what was summed", "attention-keeps-its-bounds"),
    fault(Mutant::equal_split_weights, "equal-split-weights", "attention",
          "every split is merged with the first one's weight", "attention-keeps-its-bounds"),
    fault(Mutant::row_sum_part_lost, "row-sum-part-lost", "attention",
          "a quarter of the row sum is lost", "attention-keeps-its-bounds"),
    fault(Mutant::scale_not_rooted, "scale-not-rooted", "attention",
          "scores are divided by head_dim", "attention-keeps-its-bounds"),
    fault(Mutant::heads_interleaved, "heads-interleaved", "attention",
          "query heads read the K/V heads in turn", "groups-are-repeated-heads"),
    fault(Mutant::threads_change_scale, "threads-change-scale", "attention",
          "with several threads scores are scaled otherwise", "replicas-are-equal"),
    fault(Mutant::empty_splits_count, "empty-splits-count", "attention",
          "splits without keys are merged with the largest weight", "empty-splits-change-nothing"),

    plant(Plant::position_plus_one, "position+1", "RoPE turns new rows by one position too many",
          "cache-on-is-off"),
    plant(Plant::mask_missing, "mask-missing", "every query sees all keys of its pass",
          "later-tokens-change-nothing"),
    plant(Plant::window_off_by_one, "window-off-by-one", "a window is one key too wide",
          "decoder-is-plain"),
    plant(Plant::rope_table_16_bit, "rope-table-16-bit", "RoPE is computed in binary16",
          "decoder-is-plain"),
    plant(Plant::stale_cache_entry, "stale-cache-entry",
          "the row before the new ones has the key and value of row 0", "cache-on-is-off"),
    plant(Plant::pad_positions, "pad-positions", "positions of new rows count the padding",
          "padding-changes-nothing"),
    plant(Plant::causal_leak, "causal-leak", "every query sees one key beyond its own",
          "cache-on-is-off"),
    plant(Plant::swapped_heads, "swapped-heads", "two K/V heads are exchanged in the cache",
          "cache-on-is-off"),
    plant(Plant::scale_doubled, "scale-doubled", "scores are twice as large", "decoder-is-plain"),
    plant(Plant::soft_cap_missing, "soft-cap-missing", "scores and logits are not capped",
          "decoder-is-plain"),
    plant(Plant::wrong_epsilon, "wrong-epsilon", "norms add 1 instead of their epsilon",
          "decoder-is-plain"),
    fault(Mutant::rows_always_kept, "rows-always-kept", "decoder",
          "every kernel is said to leave earlier rows as they are", "kept-rows-are-equal"),
    fault(Mutant::passes_are_counted, "passes-are-counted", "decoder",
          "every fifth pass changes a logit", "rebuilt-cache-is-live"),
    fault(Mutant::passes_are_counted, "passes-are-counted", "decoder",
          "every fifth pass changes a logit", "restored-cache-goes-on"),
    fault(Mutant::patched_heads_in_turn, "patched-heads-in-turn", "decoder",
          "a patch of the cache is read row by row instead of head by head",
          "patches-are-what-they-hold"),
    fault(Mutant::patches_miss_last_row, "patches-miss-last-row", "decoder",
          "a patch of the cache leaves its last row as it is", "patches-are-what-they-hold"),

    fault(Mutant::prompts_share_numbers, "prompts-share-numbers", "runs",
          "two prompts draw the same random numbers", "draws-depend-on-their-place"),
    fault(Mutant::divergence_not_balanced, "divergence-not-balanced", "runs",
          "terms of KL leave out q - p", "divergences-are-mpfrs"),
    fault(Mutant::largest_taken_off_twice, "largest-taken-off-twice", "runs",
          "log-probabilities lose the largest logit twice", "small-changes-stay-small"),

    fault(Mutant::short_decimal, "short-decimal", "texts", "the shortest decimal is too short",
          "numbers-read-back"),
    fault(Mutant::decimal_rest_lost, "decimal-rest-lost", "texts",
          "digits behind the quotient of a decimal are dropped", "texts-round-once"),
    fault(Mutant::multiple_not_written, "multiple-not-written", "texts",
          "the text of a split leaves its multiple out", "orders-read-back"),
    fault(Mutant::unit_option_lost, "unit-option-lost", "texts",
          "the text of a unit leaves its options out", "units-read-back"),
    fault(Mutant::negative_zero_lost, "negative-zero-lost", "texts", "a flip case writes -0 as 0",
          "flip-cases-read-back"),
    fault(Mutant::record_digits_cut, "record-digits-cut", "texts",
          "records write 15 digits of a number", "records-read-back"),
    fault(Mutant::tensor_shape_reversed, "tensor-shape-reversed", "texts",
          "a safetensors header has shapes from the last dimension on", "tensors-read-back"),
    fault(Mutant::label_lost, "label-lost", "texts", "the text of an arm leaves its label out",
          "arms-read-back"),
    fault(Mutant::newline_lost, "newline-lost", "texts",
          "the spelling of a newline is that of a blank", "tokens-decode-to-their-text"),
});

#ifdef KVSIM_MUTANTS
/// Switches a mutant on for as long as it lives.
class SwitchedOn {
 public:
  explicit SwitchedOn(Mutant mutant) { current_mutant = mutant; }
  SwitchedOn(const SwitchedOn&) = delete;
  SwitchedOn& operator=(const SwitchedOn&) = delete;
  ~SwitchedOn() { current_mutant = Mutant::none; }
};
#endif

}  // namespace

std::span<const MutantRow> mutant_rows() { return table; }

std::optional<PropertyTally> kill(const MutantRow& row, std::uint64_t seed,
                                  std::int64_t most_runs) {
  const auto property = find_property(row.killed_by);
  if (!property) return std::nullopt;
#ifdef KVSIM_MUTANTS
  const SwitchedOn on(row.mutant);
#else
  if (row.mutant != Mutant::none) return std::nullopt;
#endif
  PropertyTally tally =
      run_property(**property, {.seed = seed, .first = 0, .count = most_runs, .plant = row.plant});
  if (!tally.violation) return std::nullopt;
  return tally;
}

}  // namespace kvsim::fuzz
