// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/controls/compare_bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "experiments/protocol/along_text.h"

namespace kvsim::experiments {
namespace {

/// Whether two caches hold the same bits in their first rows.
Result<bool> same_caches(const EngineSequence& first, const EngineSequence& second,
                         std::int64_t rows) {
  const StateShape shape = first.state_shape();
  if (shape != second.state_shape()) return false;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      const StateBlock block{layer, part, 0, rows};
      const Result<std::vector<double>> one = first.state(block);
      if (!one) return one.error();
      const Result<std::vector<double>> two = second.state(block);
      if (!two) return two.error();
      if (!same_bits(*one, *two)) return false;
    }
  }
  return true;
}

}  // namespace

bool same_bits(std::span<const double> first, std::span<const double> second) {
  return std::ranges::equal(first, second, [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
           (std::isnan(a) && std::isnan(b));
  });
}

Result<Json> compare_bits(const StudyArm& first, const StudyArm& second,
                          std::span<const TokenId> prompt, std::int64_t new_tokens) {
  std::int64_t other_logits = 0;
  bool caches = true;
  const std::array arms{AlongArm{&first, prompt}, AlongArm{&second, prompt}};
  const auto compare = [&](const AlongStep& step) -> Result<bool> {
    if (!same_bits(step.passes[0].logits, step.passes[1].logits)) ++other_logits;
    if (step.step + 1 < new_tokens) return true;
    const std::int64_t rows = std::ssize(prompt) + step.step;
    Result<bool> same =
        same_caches(step.sequences[0].sequence(), step.sequences[1].sequence(), rows);
    if (!same) return same;
    caches = *same;
    return true;
  };
  const auto done = along_text(arms, {.new_tokens = new_tokens}, compare);
  if (!done) return done.error();
  return Json{
      {"steps", new_tokens}, {"other_logits", other_logits}, {"other_caches", caches ? 0 : 1}};
}

}  // namespace kvsim::experiments
