// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sim/attention/online_tiles.h"
#include "sim/attention/vector_steps.h"
#include "softfloat/formats.h"
#include "softfloat/mutants.h"

namespace kvsim::attention {
namespace {

/// Columns whose key the row does not see.
void fill_hidden(std::span<float> columns, const KeyRange& seen, float score) {
  std::fill(columns.begin(), columns.begin() + seen.begin, score);
  std::fill(columns.begin() + seen.end, columns.end(), score);
}

}  // namespace

/// m': the maximum ignores NaN, as a GPU's does.
float OnlineTiles::new_maximum(float before, std::span<const float> scores) const {
  return steps_.maximum(before, scores.data(), scores.size(), rule_.maximum_offset);
}

/// Whether a maximum of −∞ counts as 0 in the rescale factor of a block.
bool OnlineTiles::guards_rescale(bool hides_keys) const {
  switch (rule_.unrisen) {
    case UnrisenMaximum::zero:
      return true;
    case UnrisenMaximum::zero_in_exponents:
      return hides_keys || run_.problem.mask.window > 0;
    case UnrisenMaximum::zero_where_masked:
      return hides_keys;
    case UnrisenMaximum::finite:
    case UnrisenMaximum::finite_mask:
      break;
  }
  return false;
}

/// The same of the exponents of a block that is the row's first one, or hides keys from it.
bool OnlineTiles::guards_exponents(bool first_or_hides_keys) const {
  switch (rule_.unrisen) {
    case UnrisenMaximum::zero:
    case UnrisenMaximum::zero_in_exponents:
      return true;
    case UnrisenMaximum::zero_where_masked:
      return first_or_hides_keys;
    case UnrisenMaximum::finite:
    case UnrisenMaximum::finite_mask:
      break;
  }
  return false;
}

/// Steps 2 to 5 of the block for one row, but for the products.
void OnlineTiles::softmax_row(std::int64_t row, const KeyRange& seen, const AttentionPlace& place,
                              State& state) const {
  const std::span<float> p(state.p.data() + row * plan_.block_columns, index(plan_.block_columns));
  std::span<float> scores = p.subspan(index(seen.begin), index(seen.size()));
  exponents_.finish_scores(scores);
  if (has_finite_mask()) {
    fill_hidden(p, seen, rule_.first_maximum);
    scores = p;
  }
  const float before = state.maximum[index(row)];
  float maximum = new_maximum(before, scores);
  const bool first = state.started[index(row)] == 0;
  const bool hides = seen.size() < plan_.block_columns;
  float r = 1;
  bool rescaled = false;
  if (!first) {
    const bool guarded = maximum == no_score && guards_rescale(hides);
    const float x = exponents_.of_rescale(before, guarded ? 0.0F : maximum);
    if (rule_.rescale_threshold > 0 && x >= -rule_.rescale_threshold) {
      maximum = before;
    } else {
      // Mostly the maximum stays, and an exponential on its own takes as long as a vector of them.
      const bool stays = x == 0 && !std::signbit(x);
      r = stays ? exp_of_zero_ : exponential(x);
      if (rule_.flush_below < 0 && x < rule_.flush_below) r = 0;
      if (mutant_is_on(Mutant::no_rescaling)) r = 1;
      rescaled = r != 1;
    }
  }
  // FlashAttention-4 masks a row's first block and blocks with hidden keys, and emulates elsewhere.
  const bool emulates = rule_.emulated_exponentials && !first && !hides;
  state.started[index(row)] = 1;
  state.maximum[index(row)] = maximum;
  state.rescale[index(row)] = r;
  run_.show(AttentionStep::maximum, place, {&maximum, 1});
  run_.show(AttentionStep::rescale, place, {&r, 1});

  const bool guarded = maximum == no_score && guards_exponents(first || hides);
  exponents_.subtract(steps_, scores, guarded ? 0.0F : maximum);
  if (!has_finite_mask()) fill_hidden(p, seen, no_score);
  const std::span<const float> seen_p = p.subspan(index(seen.begin), index(seen.size()));
  run_.show(AttentionStep::exponents, place, seen_p);
  exponentials(p, emulates);
  run_.show(AttentionStep::exponentials, place, seen_p);
  if (rule_.row_sum != RowSumRule::unit) {
    const auto sums = std::span(state.sums).subspan(index(row * row_sum_parts), row_sum_parts);
    add_to_row_sum(rule_.row_sum, p, r, sums);
    run_.show(AttentionStep::row_sum, place, sums);
  }
  if (!rescaled) return;
  const std::int64_t head_dim = run_.shape().head_dim;
  const std::span<float> o(state.o.data() + row * head_dim, index(head_dim));
  if (half_outputs_) r = rounded_to_half(r);
  multiply_by(o, r);
  if (half_outputs_) round_to(softfloat::binary16, o);
  run_.show(AttentionStep::rescaled_output, place, o);
}

/// Exponents of a block, −∞ where a key is masked, become probabilities.
void OnlineTiles::exponentials(std::span<float> x, bool emulates) const {
  if (rule_.flush_below < 0) {
    for (float& e : x) e = e < rule_.flush_below ? no_score : e;
  }
  const SimdLevel level = run_.options.engine.level;
  std::vector<float> emulated;
  if (emulates) {
    for (std::int64_t j = 0; j < plan_.block_columns; ++j) {
      if (is_emulated(j, plan_.block_columns)) emulated.push_back(x[index(j)]);
    }
    polynomial_.exp2(emulated, emulated, level);
  }
  if (exponents_.natural()) {
    exp_.exp(x, x, level);
  } else {
    exp_.exp2(x, x, level);
  }
  if (emulated.empty()) return;
  std::size_t next = 0;
  for (std::int64_t j = 0; j < plan_.block_columns; ++j) {
    if (!is_emulated(j, plan_.block_columns)) continue;
    x[index(j)] = emulated[next++];
  }
}

}  // namespace kvsim::attention
