// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/property/draw_arm.h"
#include "fuzz/property/groups.h"
#include "fuzz/property/plain_decoder.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

using Numbers = std::vector<double>;
using Tokens = std::vector<std::int32_t>;
using Lengths = std::vector<std::int64_t>;

/// Passes over so many rows, of random lengths; every second one is a row on its own.
Lengths draw_passes(Random& random, std::int64_t rows) {
  Lengths lengths;
  while (rows > 0) {
    const std::int64_t length = random.once_in(2) ? 1 : random.between(1, rows);
    lengths.push_back(length);
    rows -= length;
  }
  return lengths;
}

/// Where rows stand: padding in front of the sequence, and the rows' positions.
struct Place {
  std::int64_t padding = 0;
};

/// The logits of every row of these passes but padding, one after another.
Result<Numbers> run_passes(IncrementalDecoder& decoder, KvCache& cache, const Tokens& tokens,
                           const Lengths& lengths, const Place& place = {}) {
  Numbers logits;
  std::int64_t row = 0;
  for (const std::int64_t length : lengths) {
    std::vector<std::int64_t> positions;
    for (std::int64_t i = row; i < row + length; ++i) {
      positions.push_back(std::max<std::int64_t>(0, i - place.padding));
    }
    DecoderPass pass;
    pass.tokens =
        std::span(tokens).subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(length));
    pass.first_row = row;
    if (place.padding > 0) pass.positions = positions;
    pass.padding = place.padding;
    pass.all_logits = true;
    const auto result = decoder.pass(cache, pass);
    if (!result) return result.error();
    const std::int64_t skipped = std::clamp<std::int64_t>(place.padding - row, 0, length);
    logits.insert(logits.end(), result->logits.begin() + skipped * decoder.shape().vocabulary,
                  result->logits.end());
    row += length;
  }
  return logits;
}

/// The same from an empty cache.
Result<Numbers> run_from_start(const Arm& arm, const Tokens& tokens, const Lengths& lengths,
                               const Place& place = {}) {
  auto decoder = arm.decoder();
  if (!decoder) return decoder.error();
  KvCache cache = decoder->new_cache();
  return run_passes(*decoder, cache, tokens, lengths, place);
}

/// Says where two lists of logits, of rows of one vocabulary, are further apart than `tolerance`.
Violation logits_violation(const Arm& arm, const Result<Numbers>& first,
                           const Result<Numbers>& second, std::string_view how,
                           double tolerance = 0) {
  if (!first) return first.error().message;
  if (!second) return second.error().message;
  const std::size_t count = std::min(first->size(), second->size());
  for (std::size_t i = 0; i < count; ++i) {
    const double a = (*first)[i];
    const double b = (*second)[i];
    if (a == b || std::fabs(a - b) <= tolerance) continue;
    return fmt::format("{}: logit {} is {:a}, {} {:a}", arm.text(), i, a, how, b);
  }
  return std::nullopt;
}

constexpr auto invariant = std::to_array<std::string_view>(
    {"batch-invariant", "batch-invariant-fp32", "exact", "exact-sums"});
constexpr auto all_kinds = std::to_array<std::string_view>(
    {"h100", "a100", "cpu", "fp32", "batch-invariant", "exact", "binary64"});

Violation cache_on_is_off(PropertyInput& input) {
  const auto arm = draw_arm(input, invariant);
  if (!arm) return arm.error().message;
  const std::int64_t rows = input.random.between(2, 14);
  const Tokens tokens = draw_tokens(input.random, rows, arm->model.shape().vocabulary);
  const Lengths lengths = draw_passes(input.random, rows);
  return logits_violation(*arm, run_from_start(*arm, tokens, {rows}),
                          run_from_start(*arm, tokens, lengths),
                          fmt::format("in passes of {} rows", fmt::join(lengths, ", ")));
}

Violation decoder_is_plain(PropertyInput& input) {
  constexpr auto binary64 = std::to_array<std::string_view>({"binary64"});
  const auto arm = draw_arm(input, binary64);
  if (!arm) return arm.error().message;
  const std::int64_t rows = input.random.between(2, 10);
  const Tokens tokens = draw_tokens(input.random, rows, arm->model.shape().vocabulary);
  const Lengths lengths = draw_passes(input.random, rows);
  const Result<Numbers> plain = PlainDecoder(arm->model).logits(tokens);
  double largest = 1;
  for (const double x : *plain) largest = std::max(largest, std::fabs(x));
  return logits_violation(*arm, run_from_start(*arm, tokens, lengths), plain,
                          "in the plain decoder", 1e-9 * largest);
}

Violation padding_changes_nothing(PropertyInput& input) {
  constexpr auto masking = std::to_array<std::string_view>({"batch-invariant-fp32", "exact"});
  const auto arm = draw_arm(input, masking);
  if (!arm) return arm.error().message;
  const std::int64_t rows = input.random.between(2, 9);
  const std::int64_t padding = input.random.between(1, 4);
  Tokens padded = draw_tokens(input.random, padding + rows, arm->model.shape().vocabulary);
  const Tokens tokens(padded.begin() + padding, padded.end());
  Lengths lengths{input.random.between(1, rows)};
  lengths.insert(lengths.end(), static_cast<std::size_t>(rows - lengths[0]), 1);
  const auto alone = run_from_start(*arm, tokens, lengths);
  lengths[0] += padding;
  return logits_violation(*arm, alone, run_from_start(*arm, padded, lengths, {padding}),
                          fmt::format("behind {} rows of padding", padding));
}

Violation later_tokens_change_nothing(PropertyInput& input) {
  const auto arm = draw_arm(input, all_kinds);
  if (!arm) return arm.error().message;
  const std::int64_t rows = input.random.between(2, 14);
  const DecoderShape& shape = arm->model.shape();
  Tokens tokens = draw_tokens(input.random, rows, shape.vocabulary);
  const auto before = run_from_start(*arm, tokens, {rows});
  const std::int64_t kept = input.random.between(1, rows - 1);
  for (std::int64_t i = kept; i < rows; ++i) {
    std::int32_t& token = tokens[static_cast<std::size_t>(i)];
    token = static_cast<std::int32_t>((token + 1 + input.random.below(shape.vocabulary - 1)) %
                                      shape.vocabulary);
  }
  Result<Numbers> after = run_from_start(*arm, tokens, {rows});
  if (after) after->resize(static_cast<std::size_t>(kept * shape.vocabulary));
  return logits_violation(*arm, before, after, "with other tokens behind it");
}

/// The digest of every row of the cache's first layer's keys and last layer's values.
std::string digests_of(const KvCache& cache) {
  std::string all;
  for (std::int64_t row = 0; row < cache.rows(); ++row) {
    all += cache.digest(0, KvPart::key, 0, row);
    all += cache.digest(cache.layers() - 1, KvPart::value, cache.kv_heads() - 1, row);
  }
  return all;
}

Violation rebuilt_cache_is_live(PropertyInput& input) {
  const auto arm = draw_arm(input, all_kinds);
  if (!arm) return arm.error().message;
  auto decoder = arm->decoder();
  if (!decoder) return decoder.error().message;
  const std::int64_t rows = input.random.between(2, 10);
  const Tokens tokens = draw_tokens(input.random, rows, arm->model.shape().vocabulary);
  Lengths lengths{input.random.between(1, rows)};
  lengths.insert(lengths.end(), static_cast<std::size_t>(rows - lengths[0]), 1);
  KvCache live = decoder->new_cache();
  KvCache rebuilt = decoder->new_cache();
  const auto first = run_passes(*decoder, live, tokens, lengths);
  const auto second = run_passes(*decoder, rebuilt, tokens, lengths);
  Violation violation = logits_violation(*arm, first, second, "with the cache built anew");
  if (!violation && digests_of(live) != digests_of(rebuilt)) {
    violation = fmt::format("{}: the cache that is built anew has other bits", arm->text());
  }
  return violation;
}

Violation restored_cache_goes_on(PropertyInput& input) {
  const auto arm = draw_arm(input, all_kinds);
  if (!arm) return arm.error().message;
  auto decoder = arm->decoder();
  if (!decoder) return decoder.error().message;
  const std::int64_t rows = input.random.between(1, 8);
  const std::int64_t vocabulary = arm->model.shape().vocabulary;
  const Tokens tokens = draw_tokens(input.random, rows, vocabulary);
  KvCache cache = decoder->new_cache();
  const auto prompt = run_passes(*decoder, cache, tokens, {rows});
  if (!prompt) return prompt.error().message;
  const KvCache saved = cache;
  const auto next = [&](KvCache& at, const Tokens& token) -> Result<Numbers> {
    DecoderPass pass;
    pass.tokens = token;
    pass.first_row = rows;
    auto result = decoder->pass(at, pass);
    if (!result) return result.error();
    return std::move(result->logits);
  };
  const Tokens token = draw_tokens(input.random, 1, vocabulary);
  const auto first = next(cache, token);
  const auto another = next(cache, draw_tokens(input.random, 1, vocabulary));
  if (!another) return another.error().message;
  KvCache restored = saved;
  return logits_violation(*arm, first, next(restored, token), "from the restored cache");
}

Violation kept_rows_are_equal(PropertyInput& input) {
  const auto arm = draw_arm(input, all_kinds);
  if (!arm) return arm.error().message;
  auto decoder = arm->decoder();
  if (!decoder) return decoder.error().message;
  const std::int64_t after = input.random.between(2, 40);
  const std::int64_t before = input.random.between(1, after - 1);
  if (!decoder->keeps_rows(before, after)) return std::nullopt;
  const Tokens tokens = draw_tokens(input.random, after, arm->model.shape().vocabulary);
  KvCache shorter = decoder->new_cache();
  KvCache longer = decoder->new_cache();
  const auto short_pass = run_passes(*decoder, shorter, tokens, {before});
  const auto long_pass = run_passes(*decoder, longer, tokens, {after});
  return logits_violation(*arm, short_pass, long_pass,
                          fmt::format("in a pass of {} rows instead of {}", after, before));
}

constexpr auto table = std::to_array<Property>({
    {"cache-on-is-off",
     "with batch-invariant or exact kernels, passes of any lengths give the logits of one pass",
     "arXiv:2506.09501 (2025-06); docs/decoder.md", cache_on_is_off},
    {"decoder-is-plain",
     "in binary64 a decoder agrees with a plain one that shares no operator with it",
     "the definition of every operator", decoder_is_plain},
    {"padding-changes-nothing", "rows of padding in front change no logit, with exact sums",
     "a masked key has probability 0", padding_changes_nothing},
    {"later-tokens-change-nothing", "a row's logits do not depend on later tokens of its pass",
     "causal attention", later_tokens_change_nothing},
    {"rebuilt-cache-is-live", "the same passes from an empty cache give the bits of the live cache",
     "arXiv:2607.28495 (2026-07)", rebuilt_cache_is_live},
    {"restored-cache-goes-on", "a copy of a cache goes on as the cache did", "docs/decoder.md",
     restored_cache_goes_on},
    {"kept-rows-are-equal",
     "rows that a longer pass is said to leave as they are have the bits of the shorter pass",
     "docs/decoder.md", kept_rows_are_equal},
});

}  // namespace

std::span<const Property> decoder_properties() { return table; }

}  // namespace kvsim::fuzz
