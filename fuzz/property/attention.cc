// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/flip/confirm.h"
#include "fuzz/flip/mutate.h"
#include "fuzz/flip/score.h"
#include "fuzz/property/draw.h"
#include "fuzz/property/groups.h"
#include "sim/attention/run.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

/// One layer with its numbers.
struct Layer {
  const AttentionKernel* kernel = nullptr;
  AttentionProblem problem;  ///< without pointers
  std::vector<float> q, k, v;

  [[nodiscard]] Result<AttentionResult> run(const EngineOptions& engine = {}) const {
    AttentionProblem given = problem;
    given.q = q.data();
    given.k = k.data();
    given.v = v.data();
    AttentionOptions options;
    options.engine = engine;
    return run_attention(*kernel, given, options);
  }
};

std::vector<float> draw_floats(Random& random, const softfloat::Format& format,
                               std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  random.gaussians(numbers);
  static_cast<void>(round_values(format, numbers, numbers));
  return numbers;
}

/// Numbers that the layer's sizes ask for.
void draw_numbers(Random& random, Layer& layer) {
  const AttentionShape& shape = layer.problem.shape;
  const std::int64_t keys = shape.kv_heads * shape.kv_len * shape.head_dim;
  layer.q = draw_floats(random, layer.problem.storage,
                        shape.query_heads * shape.query_len * shape.head_dim);
  layer.k = draw_floats(random, layer.problem.storage, keys);
  layer.v = draw_floats(random, layer.problem.storage, keys);
}

/// A kernel with sizes, mask and launch that it accepts.
Layer draw_layer(Random& random, bool (*wanted)(const AttentionKernel&)) {
  for (;;) {
    Layer layer;
    layer.kernel = &one_of(random, attention_kernels());
    if (!wanted(*layer.kernel) || layer.kernel->storages.empty()) continue;
    AttentionProblem& problem = layer.problem;
    problem.storage = one_of(random, layer.kernel->storages).storage;
    AttentionShape& shape = problem.shape;
    shape.kv_heads = random.between(1, 2);
    shape.query_heads = shape.kv_heads * random.between(1, 3);
    shape.head_dim = 16 * random.between(1, 4);
    shape.kv_len = random.once_in(3) ? random.between(1, 300) : random.between(1, 40);
    shape.query_len =
        random.once_in(2) ? 1 : random.between(1, std::min<std::int64_t>(shape.kv_len, 12));
    if (random.once_in(3)) problem.mask.window = random.between(1, shape.kv_len);
    if (random.once_in(4)) problem.mask.soft_cap = 8;
    if (layer.kernel->family == AttentionFamily::online_tiles) {
      problem.launch.splits = random.between(1, 4);
    }
    draw_numbers(random, layer);
    if (layer.run()) return layer;
    problem.mask = {};
    if (layer.run()) return layer;
  }
}

std::string layer_text(const Layer& layer) {
  const AttentionShape& shape = layer.problem.shape;
  return fmt::format(
      "{} in {}, {} query heads on {}, head_dim {}, {} queries, {} keys, window {}, "
      "soft cap {}, {} splits",
      layer.kernel->name, softfloat::format_name(layer.problem.storage), shape.query_heads,
      shape.kv_heads, shape.head_dim, shape.query_len, shape.kv_len, layer.problem.mask.window,
      layer.problem.mask.soft_cap, layer.problem.launch.splits);
}

/// The first number of another bit; nothing where there is none.
std::optional<std::size_t> first_difference(const std::vector<float>& a,
                                            const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return i;
  }
  return std::nullopt;
}

bool any_kernel(const AttentionKernel&) { return true; }

/// Whether the kernel's orders do not depend on how many heads share a K/V head.
bool sums_by_row(const AttentionKernel& kernel) {
  const bool by_shape = kernel.eager != nullptr && !kernel.eager->scores_kernel.empty();
  return !kernel.storages.front().scores.empty() && !by_shape;
}

Violation replicas_are_equal(PropertyInput& input) {
  const Layer layer = draw_layer(input.random, any_kernel);
  const auto once = layer.run();
  const auto again = layer.run({.threads = 2, .level = SimdLevel::scalar});
  if (!once) return once.error().message;
  if (!again) return again.error().message;
  const auto at = first_difference(once->out, again->out);
  if (!at) return std::nullopt;
  return fmt::format("{}: output {} is {:a}, and {:a} with two threads and scalar code",
                     layer_text(layer), *at, once->out[*at], again->out[*at]);
}

Violation hidden_keys_change_nothing(PropertyInput& input) {
  Layer layer = draw_layer(input.random, any_kernel);
  const AttentionShape& shape = layer.problem.shape;
  const auto before = layer.run();
  if (!before) return before.error().message;
  const std::int64_t query = input.random.below(shape.query_len);
  const std::int64_t position = shape.kv_len - shape.query_len + query;
  const std::int64_t window = layer.problem.mask.window;
  const std::int64_t first = window > 0 ? std::max<std::int64_t>(0, position - window + 1) : 0;
  const std::vector<float> others =
      draw_floats(input.random, layer.problem.storage, 2 * shape.head_dim);
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    for (std::int64_t key = 0; key < shape.kv_len; ++key) {
      if (key >= first && key <= position) continue;
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        const auto at = static_cast<std::size_t>((head * shape.kv_len + key) * shape.head_dim + d);
        layer.k[at] = others[static_cast<std::size_t>(d)];
        layer.v[at] = others[static_cast<std::size_t>(shape.head_dim + d)];
      }
    }
  }
  const auto after = layer.run();
  if (!after) return after.error().message;
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
      const auto at =
          static_cast<std::size_t>((head * shape.query_len + query) * shape.head_dim + d);
      // Zeros may change their sign: 0 times a hidden value has the value's.
      if (before->out[at] == after->out[at]) continue;
      return fmt::format("{}: query {} moves with keys that it does not see, {:a} to {:a}",
                         layer_text(layer), query, before->out[at], after->out[at]);
    }
  }
  return std::nullopt;
}

Violation groups_are_repeated_heads(PropertyInput& input) {
  Layer grouped = draw_layer(input.random, sums_by_row);
  // Where a group's heads are rows of one tile, they share what is split.
  const TileRule* const tiles = grouped.kernel->tiles;
  if (tiles != nullptr && tiles->split.divides_visited_blocks) grouped.problem.launch.splits = 1;
  const AttentionShape& shape = grouped.problem.shape;
  Layer repeated = grouped;
  repeated.problem.shape.kv_heads = shape.query_heads;
  repeated.k.clear();
  repeated.v.clear();
  const std::int64_t numbers = shape.kv_len * shape.head_dim;
  for (std::int64_t head = 0; head < shape.query_heads; ++head) {
    const std::int64_t begin = head / shape.group() * numbers;
    repeated.k.insert(repeated.k.end(), grouped.k.begin() + begin,
                      grouped.k.begin() + begin + numbers);
    repeated.v.insert(repeated.v.end(), grouped.v.begin() + begin,
                      grouped.v.begin() + begin + numbers);
  }
  const auto one = grouped.run();
  const auto other = repeated.run();
  if (!one) return one.error().message;
  if (!other) return other.error().message;
  const auto at = first_difference(one->out, other->out);
  if (!at) return std::nullopt;
  return fmt::format("{}: output {} is {:a}, with repeated K/V heads {:a}", layer_text(grouped),
                     *at, one->out[*at], other->out[*at]);
}

/// Whether splits are made of whole blocks; FlashInfer's are of equal numbers of keys.
bool splits_by_block(const AttentionKernel& kernel) {
  if (kernel.tiles == nullptr) return false;
  const SplitPolicy policy = kernel.tiles->split.policy;
  return policy != SplitPolicy::never && policy != SplitPolicy::chunk_search;
}

Violation empty_splits_change_nothing(PropertyInput& input) {
  Layer layer = draw_layer(input.random, splits_by_block);
  // All keys in one block, so that all splits but one have none.
  std::int64_t columns = layer.problem.shape.kv_len;
  for (const TileColumns& tile : layer.kernel->tiles->tiles) {
    for (const std::int64_t one : {tile.columns, tile.split_columns, tile.narrow_columns}) {
      if (one > 0) columns = std::min(columns, one);
    }
  }
  AttentionShape& shape = layer.problem.shape;
  shape.kv_len = columns;
  shape.query_len = std::min(shape.query_len, columns);
  draw_numbers(input.random, layer);
  layer.problem.launch.splits = 1;
  const auto whole = layer.run();
  layer.problem.launch.splits = input.random.between(2, 5);
  const auto split = layer.run();
  if (!whole) return whole.error().message;
  if (!split) return split.error().message;
  for (std::size_t i = 0; i < whole->out.size(); ++i) {
    // Zeros may change their sign: the merge adds to +0.
    if (whole->out[i] == split->out[i]) continue;
    return fmt::format("{}: output {} is {:a}, and {:a} in one split", layer_text(layer), i,
                       split->out[i], whole->out[i]);
  }
  return std::nullopt;
}

/// Says where a path is further from exact than its bound, or where a margin above the bounds
/// flips; `exact` is enclosed by MPFR.
Violation bound_violation(const FlipScorer& scorer, const FlipCase& flip_case) {
  const FlipScore score = scorer.score(flip_case);
  if (!score.is_finite()) return std::nullopt;
  const auto confirmation = confirm(scorer, flip_case);
  if (!confirmation) return std::nullopt;  // 256 bits do not tell
  for (const std::size_t path : {path_on, path_off}) {
    const PathScore& one = score.paths[path];
    const double error =
        std::max(one.difference - confirmation->highest, confirmation->lowest - one.difference);
    if (error <= one.bound * (1 + 0x1p-20)) continue;
    return fmt::format("{} against {}: {} is off by {:a}, beyond its bound {:a}",
                       scorer.path_name(path_on), scorer.path_name(path_off),
                       scorer.path_name(path), error, one.bound);
  }
  if (confirmation->margin() > score.bound() && confirmation->flips()) {
    return fmt::format("{} against {}: a flip at the margin {:a}, above the bounds {:a}",
                       scorer.path_name(path_on), scorer.path_name(path_off),
                       confirmation->margin(), score.bound());
  }
  return std::nullopt;
}

/// Random cases and built-up ones.
Violation bounds_hold(PropertyInput& input, const FlipScorer& scorer, int cases) {
  const ValueFitter fitter(scorer.shape().storage);
  const Mutator mutator(scorer, fitter);
  for (int i = 0; i < cases; ++i) {
    const FlipCase flip_case =
        i % 2 == 0 ? fitter.random_case(scorer.shape(), input.random) : mutator.seed(input.random);
    if (Violation violation = bound_violation(scorer, flip_case)) return violation;
  }
  return std::nullopt;
}

Violation sums_keep_their_bounds(PropertyInput& input) {
  constexpr auto formats = std::to_array<softfloat::Format>(
      {softfloat::binary16, softfloat::bfloat16, softfloat::binary32});
  for (;;) {
    CaseShape shape;
    shape.kind = CaseKind::sum;
    shape.storage = one_of(input.random, std::span<const softfloat::Format>(formats));
    shape.accumulator = one_of(input.random, std::span<const softfloat::Format>(formats));
    shape.product = draw_product(input.random);
    shape.terms = input.random.between(2, 90);
    for (Order& order : shape.orders) {
      order = draw_order(input.random, shape.terms,
                         {.units = true,
                          .rounded = false,
                          .input = shape.storage,
                          .accumulator = shape.accumulator});
    }
    const auto scorer = FlipScorer::make(shape);
    if (scorer) return bounds_hold(input, *scorer, 4);
  }
}

Violation attention_keeps_its_bounds(PropertyInput& input) {
  for (;;) {
    CaseShape shape;
    shape.kind = CaseKind::attention;
    const AttentionKernel& kernel = one_of(input.random, attention_kernels());
    if (kernel.storages.empty()) continue;
    shape.storage = one_of(input.random, kernel.storages).storage;
    const std::int64_t group = input.random.between(1, 2);
    shape.attention = {.query_heads = group,
                       .kv_heads = 1,
                       .query_len = 1,
                       .kv_len = input.random.between(2, 200),
                       .head_dim = 16 * input.random.between(1, 4)};
    for (KernelPath& path : shape.kernels) {
      path = {std::string(kernel.name), input.random.once_in(2), input.random.between(0, 3)};
    }
    const auto scorer = FlipScorer::make(shape);
    if (scorer) return bounds_hold(input, *scorer, 2);
  }
}

constexpr auto table = std::to_array<Property>({
    {"sums-keep-their-bounds",
     "a sum is within its running bound of MPFR's, and a margin above the bounds does not flip",
     "Higham, Accuracy and Stability of Numerical Algorithms, 3.3; docs/fuzzing.md",
     sums_keep_their_bounds},
    {"attention-keeps-its-bounds",
     "attention is within its bound of MPFR's, and a margin above the bounds does not flip",
     "docs/fuzzing.md", attention_keeps_its_bounds},
    {"replicas-are-equal", "threads and vector code change no bit of attention",
     "docs/correctness.md", replicas_are_equal},
    {"hidden-keys-change-nothing", "a query does not move with keys that its mask hides",
     "docs/attention.md", hidden_keys_change_nothing},
    {"groups-are-repeated-heads",
     "grouped-query attention has the bits of attention with the K/V heads repeated",
     "one reduction for a row, whatever shares its K/V head", groups_are_repeated_heads},
    {"empty-splits-change-nothing",
     "where all keys lie in one split, the others and the merge change no output",
     "a merge with weight 1", empty_splits_change_nothing},
});

}  // namespace

std::span<const Property> attention_properties() { return table; }

}  // namespace kvsim::fuzz
