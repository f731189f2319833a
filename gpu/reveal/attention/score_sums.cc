// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/score_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "gpu/reveal/attention/value_sums.h"
#include "gpu/reveal/count_probe.h"
#include "gpu/reveal/order_fit.h"
#include "sim/elementary.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

float power_of_two(int exponent) { return std::ldexp(1.0F, exponent); }

constexpr double lowest_score = -8;  // of all terms together: e^-8 is a number of every format
constexpr double clear_part = 0.3;   // of a step: what is farther from a count is none
constexpr float value = 0x1p10F;     // of V: keeps outputs above subnormal numbers
constexpr std::int64_t most_keys = 64;
constexpr int signature_probes = 24;

}  // namespace

ScoreSums::ScoreSums(AttentionCalls& calls, std::vector<std::int64_t> keys, std::int64_t reference)
    : calls_(calls), keys_(std::move(keys)), reference_(reference), wide_(softfloat::binary32) {
  const Format& format = calls_.layer().format;
  const auto n = static_cast<double>(terms());
  // The power of two below what makes all terms together the lowest score.
  int step = std::ilogb(-lowest_score / (n * calls_.layer().scale()));
  if (format.exponent_bits >= 8) {
    query_ = -1;
    mask_ = power_of_two(100);
    counted_ = power_of_two(step);
    rest_ = power_of_two(step - 60);
    return;
  }
  // Masks of 2^30 hide less than 2^5 even where sums have 24 bits and round.
  const int top = format.emax();
  step = std::min(step, 2 * top - 26 - std::ilogb(n) - 1);
  query_ = -power_of_two(top);
  mask_ = power_of_two(top);
  counted_ = power_of_two(std::max(step - top, format.emin() - format.precision + 1));
}

std::int64_t ScoreSums::columns() const {
  return calls_.shape().kv_heads * static_cast<std::int64_t>(keys_.size());
}

std::string ScoreSums::description() const { return "q·k of " + calls_.description(); }

Result<std::vector<double>> ScoreSums::logarithms(std::span<const float> right) {
  const AttentionShape& shape = calls_.shape();
  const std::int64_t dim = shape.head_dim;
  const auto keys = static_cast<std::int64_t>(keys_.size());
  AttentionOperands data = zero_operands(shape);
  std::ranges::fill(data.q, query_);
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    const std::int64_t first = head * shape.kv_len * dim;
    for (std::int64_t i = 0; i < keys; ++i) {
      const std::int64_t key = first + keys_[index(i)] * dim;
      for (std::int64_t k = 0; k < dim; ++k) {
        const float x = right[index((head * keys + i) * dim + k)];
        const float size = std::fabs(x);
        const float factor = size > 0x1p50F ? mask_ : size > 0x1p-20F ? counted_ : rest_;
        data.k[index(key + k)] = std::copysign(factor, x);
      }
      data.v[index(key + i)] = value;
    }
    data.v[index(first + reference_ * dim + keys)] = value;
  }
  const auto outputs = calls_.run(std::move(data));
  if (!outputs) return outputs.error();
  const std::int64_t row = calls_.layer().causal() ? 0 : (shape.query_len - 1) * shape.group();
  const auto at = [&](std::int64_t column) {
    return static_cast<double>((*outputs)[index(output_of_sum(calls_.layer(), row, column))]);
  };
  std::vector<double> found;
  found.reserve(index(columns()));
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    for (std::int64_t i = 0; i < keys; ++i) {
      const double ratio = at(head * dim + i) / at(head * dim + keys);
      found.push_back(static_cast<double>(log_f32(static_cast<float>(ratio))));
    }
  }
  return found;
}

Result<std::vector<float>> ScoreSums::compute(std::span<const float> /*left*/,
                                              std::span<const float> right) {
  if (!step_) {
    // What all terms together give says how much one of them does.
    const auto whole = logarithms(std::vector<float>(right.size(), 1));
    if (!whole) return whole.error();
    step_ = whole->front() / static_cast<double>(terms());
  }
  const auto found = logarithms(right);
  if (!found) return found.error();
  std::vector<float> counts;
  counts.reserve(found->size());
  for (const double one : *found) {
    const double count = one / step_.value_or(0);
    const double nearest = std::nearbyint(count);
    if (!(std::fabs(count - nearest) < clear_part)) {
      return Error{ErrorKind::cannot_tell, "scores do not fall by one step for each term"};
    }
    counts.push_back(static_cast<float>(std::max(0.0, nearest)));
  }
  return counts;
}

namespace {

/// The first and the last keys of the first block, and of all keys where there are more blocks.
std::vector<std::int64_t> keys_to_look_at(const AttentionShape& shape, std::int64_t block) {
  const std::int64_t most = std::min(most_keys, shape.head_dim - 1);
  const std::int64_t end = std::min(block, shape.kv_len);
  std::vector<std::int64_t> keys;
  keys.reserve(index(most));
  for (std::int64_t key = 0; key < end; ++key) {
    const bool first = key < most - most / 2;
    if ((first || key >= end - most / 2) && static_cast<std::int64_t>(keys.size()) < most) {
      keys.push_back(key);
    }
  }
  // One of them stays for the comparison.
  if (static_cast<std::int64_t>(keys.size()) == shape.kv_len) keys.erase(keys.begin());
  return keys;
}

std::int64_t reference_beside(const std::vector<std::int64_t>& keys, std::int64_t kv_len) {
  for (std::int64_t key = 0; key < kv_len; ++key) {
    if (!std::ranges::binary_search(keys, key)) return key;
  }
  return -1;
}

/// Keys with the same counts between random pairs of masks, the most first.
Result<std::vector<std::vector<std::int64_t>>> alike(ScoreSums& sums, std::int64_t keys,
                                                     std::uint64_t seed) {
  const std::int64_t n = sums.terms();
  std::map<std::vector<float>, std::vector<std::int64_t>> groups;
  std::vector<std::vector<float>> counts(index(keys));
  for (int probe = 0; probe < signature_probes && n > 1; ++probe) {
    const auto draw = static_cast<std::uint64_t>(probe);
    const auto plus =
        static_cast<std::int64_t>(philox_bits(seed, 11, 2 * draw) % static_cast<std::uint64_t>(n));
    const auto other = static_cast<std::int64_t>(philox_bits(seed, 11, 2 * draw + 1) %
                                                 static_cast<std::uint64_t>(n - 1));
    std::vector<float> vector(index(n), 1);
    vector[index(plus)] = 0x1p100F;
    vector[index(other < plus ? other : other + 1)] = -0x1p100F;
    std::vector<float> right;
    right.reserve(index(sums.columns() * n));
    for (std::int64_t i = 0; i < sums.columns(); ++i) {
      right.insert(right.end(), vector.begin(), vector.end());
    }
    const auto seen = sums.run({}, right);
    if (!seen) return seen.error();
    for (std::int64_t i = 0; i < keys; ++i) counts[index(i)].push_back((*seen)[index(i)]);
  }
  for (std::int64_t i = 0; i < keys; ++i) groups[counts[index(i)]].push_back(i);
  std::vector<std::vector<std::int64_t>> classes;
  classes.reserve(groups.size());
  for (auto& [signature, members] : groups) classes.push_back(std::move(members));
  std::ranges::sort(classes, [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  return classes;
}

}  // namespace

Result<ScoreFindings> find_scores(AttentionCalls& calls, std::int64_t block, std::uint64_t seed) {
  const AttentionShape& shape = calls.shape();
  ScoreFindings found;
  found.looked_at = keys_to_look_at(shape, block);
  const std::int64_t reference = reference_beside(found.looked_at, shape.kv_len);
  if (found.looked_at.empty() || reference < 0) {
    found.why_not = shape.kv_len < 2 ? "one key's p is 1 whatever its score is"
                                     : "outputs of one element show one p";
    return found;
  }
  if (shape.head_dim > 256) {
    found.why_not = "scores of more than 256 elements are not counted";
    return found;
  }
  ScoreSums sums(calls, found.looked_at, reference);
  const auto keys = static_cast<std::int64_t>(found.looked_at.size());
  const auto fail = [&](const Error& error) -> Result<ScoreFindings> {
    if (error.kind != ErrorKind::cannot_tell) return error;
    found.classes.clear();
    found.why_not = error.message;
    return found;
  };
  auto classes = alike(sums, keys, seed);
  if (!classes) return fail(classes.error());
  for (const std::vector<std::int64_t>& members : *classes) {
    auto tree = probe_tree(sums, {.rows = {0}, .columns = members}, seed);
    if (!tree) return fail(tree.error());
    RevealedScores scores{{}, std::move(tree->tree), {}};
    for (const std::int64_t i : members) scores.keys.push_back(found.looked_at[index(i)]);
    scores.orders = fit_orders(scores.tree, calls.layer().format);
    found.classes.push_back(std::move(scores));
  }
  return found;
}

}  // namespace kvsim::gpu
