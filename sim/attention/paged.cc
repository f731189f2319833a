// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/attention/families.h"
#include "sim/attention/vector_steps.h"
#include "sim/engine/matrix.h"
#include "sim/order.h"
#include "sim/tasks.h"
#include "softfloat/formats.h"

namespace kvsim::attention {
namespace {

constexpr std::int64_t warps = 4;
constexpr std::int64_t warp_threads = 32;
constexpr std::int64_t threads = warps * warp_threads;
constexpr std::int64_t partition_keys = 512;
constexpr std::int64_t tokens_of_a_thread = 8;  // 16 bytes of values
constexpr std::int64_t longest_for_v1 = 8192;
constexpr std::int64_t heads_for_v1 = 512;
constexpr float smallest_sum = 1e-6F;
constexpr float lowest_score = std::numeric_limits<float>::lowest();  // where maxima start
constexpr float log2_e = 0x1.715476p+0F;

/// Numbers joined with those half as far apart each time.
float butterfly(std::span<float> lanes) {
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/// Σ over a block of 128 threads: thread u takes u, u + 128, … from +0, then each warp joins its
/// threads, then the warps are joined.
float sum_over_threads(std::span<const float> values) {
  std::array<float, threads> lanes{};
  for (std::size_t j = 0; j < values.size(); ++j) lanes[j % threads] += values[j];
  std::array<float, warps> sums{};
  for (std::size_t w = 0; w < warps; ++w) {
    sums[w] = butterfly(std::span(lanes).subspan(w * warp_threads, warp_threads));
  }
  return butterfly(sums);
}

/// What one partition of the keys leaves.
struct Partition {
  float maximum = 0;
  float sum = 0;
  std::vector<float> out;  ///< [head_dim], rounded to storage
};

class Paged {
 public:
  explicit Paged(const Run& run)
      : run_(run),
        page_(run.problem.launch.page_size),
        group_(std::max<std::int64_t>(warp_threads / page_, 1)),
        vector_(std::max<std::int64_t>(8 / group_, 1)),
        exp_(gpu_exp2(run)),
        level_(run.options.engine.level) {}

  /// All query heads of one K/V head; keys of a partition, or all keys in one.
  Result<bool> run_head(std::int64_t kv_head, std::int64_t keys_of_partition,
                        std::span<float> out) const {
    const AttentionShape& shape = run_.shape();
    Result<std::vector<float>> scores = scores_of(kv_head);
    if (!scores) return scores.error();
    for (std::int64_t g = 0; g < shape.group(); ++g) {
      const std::span<const float> row =
          std::span(scores.value()).subspan(index(g * shape.kv_len), index(shape.kv_len));
      AttentionPlace place{.head = kv_head * shape.group() + g};
      std::vector<Partition> parts;
      for (; place.first_key < shape.kv_len; place.first_key += keys_of_partition) {
        place.keys = std::min(keys_of_partition, shape.kv_len - place.first_key);
        parts.push_back(partition(row.subspan(index(place.first_key), index(place.keys)),
                                  run_.values(kv_head).floats() + place.first_key * shape.head_dim,
                                  place));
        if (keys_of_partition < shape.kv_len) {
          run_.show(AttentionStep::split_output, place, parts.back().out);
        }
        ++place.split;
      }
      merge(parts, place, out.subspan(index(place.head * shape.head_dim), index(shape.head_dim)));
    }
    return true;
  }

 private:
  /// [group][kv_len]. The order of q·k: element (t + i·G)·V + e goes to component e of thread t,
  /// i increasing; the components of a thread are added in turn, then the threads joined. With the
  /// elements sorted by (i, e, t) that is two nested items of the grammar of orders.
  [[nodiscard]] Result<std::vector<float>> scores_of(std::int64_t kv_head) const {
    const AttentionShape& shape = run_.shape();
    const std::int64_t dim = shape.head_dim;
    std::vector<std::int64_t> element(index(dim));
    for (std::int64_t k = 0; k < dim; ++k) {
      const std::int64_t t = k % group_;
      const std::int64_t e = k / group_ % vector_;
      const std::int64_t i = k / (group_ * vector_);
      element[index(k)] = (t + i * group_) * vector_ + e;
    }
    const Result<Order> order = parse_order(
        fmt::format("lanes({},1,join=butterfly)/lanes({},1,join=sequential)", group_, vector_));
    if (!order) return order.error();
    const float* const q = run_.problem.q + kv_head * shape.group() * dim;
    std::vector<float> a(index(shape.group() * dim));
    for (std::int64_t g = 0; g < shape.group(); ++g) {
      for (std::int64_t k = 0; k < dim; ++k) {
        a[index(g * dim + k)] = q[g * dim + element[index(k)]];
      }
    }
    const float* const keys = run_.keys(kv_head).floats();
    std::vector<float> b(index(dim * shape.kv_len));
    for (std::int64_t j = 0; j < shape.kv_len; ++j) {
      for (std::int64_t k = 0; k < dim; ++k) {
        b[index(k * shape.kv_len + j)] = keys[j * dim + element[index(k)]];
      }
    }
    std::vector<float> scores(index(shape.group() * shape.kv_len));
    const Result<bool> done = sum_matrix({.order = order.value(),
                                          .product = Product::fused,
                                          .input = run_.problem.storage,
                                          .accumulator = softfloat::binary32,
                                          .rows = shape.group(),
                                          .terms = dim,
                                          .columns = shape.kv_len,
                                          .a = a.data(),
                                          .a_stride = dim,
                                          .b = b.data(),
                                          .b_stride = shape.kv_len},
                                         scores.data(), shape.kv_len, run_.engine_of_one());
    if (!done) return done.error();
    return scores;
  }

  /// From q·k, not yet scaled.
  [[nodiscard]] Partition partition(std::span<const float> scores, const float* values,
                                    const AttentionPlace& place) const {
    Partition part;
    std::vector<float> p(scores.begin(), scores.end());
    run_.show(AttentionStep::scores, place, p);
    multiply_by(p, run_.scale);
    run_.show(AttentionStep::scaled_scores, place, p);
    part.maximum = lowest_score;
    for (const float s : p) part.maximum = s > part.maximum ? s : part.maximum;
    run_.show(AttentionStep::maximum, place, {&part.maximum, 1});
    for (float& x : p) x = (x - part.maximum) * log2_e;
    run_.show(AttentionStep::exponents, place, p);
    exp_.exp2(p, p, level_);
    run_.show(AttentionStep::exponentials, place, p);
    part.sum = sum_over_threads(p);
    run_.show(AttentionStep::row_sum, place, {&part.sum, 1});
    const float inverse = 1 / (part.sum + smallest_sum);
    for (float& x : p) x *= inverse;
    round_to_storage(p);
    run_.show(AttentionStep::probabilities, place, p);
    part.out = values_of(p, values);
    run_.show(AttentionStep::output, place, part.out);
    round_to_storage(part.out);
    return part;
  }

  /// P·V of one partition: warp w takes every fourth page, a thread of it 8 of the page's tokens.
  [[nodiscard]] std::vector<float> values_of(std::span<const float> p, const float* values) const {
    const auto dim = index(run_.shape().head_dim);
    const auto row_threads = index(page_ / tokens_of_a_thread);
    const auto page = index(page_);
    std::vector<float> sums(warps * row_threads * dim, 0.0F);
    std::vector<float> scratch(tokens_of_a_thread * dim);
    for (std::size_t number = 0; number * page < p.size(); ++number) {
      for (std::size_t thread = 0; thread < row_threads; ++thread) {
        const std::size_t first = std::min(number * page + thread * tokens_of_a_thread, p.size());
        const std::size_t tokens = std::min<std::size_t>(tokens_of_a_thread, p.size() - first);
        multiply_tokens(p.subspan(first, tokens), values + first * dim, scratch);
        add_products(scratch, dim);
        add_into(std::span(sums).subspan(((number % warps) * row_threads + thread) * dim, dim),
                 std::span(scratch).first(dim));
      }
    }
    join(sums, row_threads, dim);
    sums.resize(dim);
    return sums;
  }

  /// products[t][d] = p_t · v_td rounded to storage; +0 for tokens that are not there.
  void multiply_tokens(std::span<const float> p, const float* values,
                       std::span<float> products) const {
    const std::size_t dim = products.size() / tokens_of_a_thread;
    for (std::size_t t = 0; t < p.size(); ++t) {
      for (std::size_t d = 0; d < dim; ++d) products[t * dim + d] = p[t] * values[t * dim + d];
    }
    std::fill(products.begin() + static_cast<std::ptrdiff_t>(p.size() * dim), products.end(), 0.0F);
    round_to_storage(products);
  }

  /// products[0] becomes the sum of the 8 products.
  void add_products(std::span<float> products, std::size_t dim) const {
    const auto row = [&](std::size_t t) { return products.subspan(t * dim, dim); };
    if (run_.problem.storage == softfloat::binary16) {
      // Even and odd tokens are the two halves of a half2, which adds in binary16.
      for (std::size_t t = 2; t < tokens_of_a_thread; ++t) {
        add_into(row(t % 2), row(t));
        round_to_storage(row(t % 2));
      }
      add_into(row(0), row(1));
    } else {
      for (std::size_t t = 0; t < tokens_of_a_thread; t += 2) add_into(row(t), row(t + 1));
      for (std::size_t t = 2; t < tokens_of_a_thread; t += 2) add_into(row(0), row(t));
    }
  }

  /// sums[warp][thread][d] → sums[0][0][d]: threads half as far apart each time, then warps.
  static void join(std::span<float> sums, std::size_t row_threads, std::size_t dim) {
    const auto row = [&](std::size_t warp, std::size_t thread) {
      return sums.subspan((warp * row_threads + thread) * dim, dim);
    };
    for (std::size_t half = row_threads / 2; half > 0; half /= 2) {
      for (std::size_t warp = 0; warp < warps; ++warp) {
        for (std::size_t i = 0; i < half; ++i) add_into(row(warp, i), row(warp, i + half));
      }
    }
    for (std::size_t half = warps / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) add_into(row(i, 0), row(i + half, 0));
    }
  }

  void merge(std::span<const Partition> parts, const AttentionPlace& place,
             std::span<float> out) const {
    if (parts.size() == 1) {
      std::copy(parts[0].out.begin(), parts[0].out.end(), out.begin());
      return;
    }
    float maximum = parts[0].maximum;
    for (const Partition& part : parts) {
      maximum = part.maximum > maximum ? part.maximum : maximum;
    }
    std::vector<float> weights;
    for (const Partition& part : parts) {
      weights.push_back(part.sum * exp_.exp2((part.maximum - maximum) * log2_e));
    }
    const float inverse = 1 / (sum_over_threads(weights) + smallest_sum);
    std::fill(out.begin(), out.end(), 0.0F);
    std::vector<float> weighted(out.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t d = 0; d < out.size(); ++d) weighted[d] = parts[i].out[d] * weights[i];
      multiply_add(weighted, inverse, out, level_);
    }
    run_.show(AttentionStep::merged_output, place, out);
    round_to_storage(out);
  }

  void round_to_storage(std::span<float> values) const {
    static_cast<void>(round_values(run_.problem.storage, values, values, level_));
  }

  const Run& run_;
  std::int64_t page_;
  std::int64_t group_;   ///< threads that share a key
  std::int64_t vector_;  ///< elements that a thread reads at once
  ExpFunction exp_;
  SimdLevel level_;
};

}  // namespace

std::int64_t keys_of_partition(const AttentionKernel& kernel, const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape;
  switch (kernel.paged->version) {
    case PagedRule::Version::v1:
      return shape.kv_len;
    case PagedRule::Version::v2:
      return partition_keys;
    case PagedRule::Version::chosen:
      break;
  }
  const AttentionLaunch& launch = problem.launch;
  const std::int64_t longest = std::max(launch.longest_kv_len, shape.kv_len);
  const bool v1 = longest <= longest_for_v1 &&
                  (longest <= partition_keys || launch.batch * shape.query_heads > heads_for_v1);
  return v1 ? shape.kv_len : partition_keys;
}

Result<bool> check_paged(const AttentionKernel& kernel, const AttentionProblem& problem) {
  const auto refuse = [&](std::string what) {
    return Error{ErrorKind::usage, fmt::format("kernel {} with {}", kernel.name, what)};
  };
  const AttentionShape& shape = problem.shape;
  if (shape.query_len != 1) {
    return refuse(fmt::format("query_len {}: accepted is 1", shape.query_len));
  }
  if (shape.head_dim % 16 != 0) {
    return refuse(fmt::format("head_dim {}: accepted are multiples of 16", shape.head_dim));
  }
  const std::int64_t page = problem.launch.page_size;
  if (page != 8 && page != 16 && page != 32) {
    return refuse(fmt::format("page_size {}: accepted are 8, 16 and 32", page));
  }
  if (problem.mask.window > 0 && problem.mask.window < shape.kv_len) {
    return refuse(fmt::format("window {}: it has no window", problem.mask.window));
  }
  if (problem.mask.soft_cap > 0) {
    return refuse(fmt::format("soft cap {}: it has no soft cap", problem.mask.soft_cap));
  }
  return true;
}

Result<bool> run_paged(const Run& run, AttentionResult& result) {
  const AttentionShape& shape = run.shape();
  const std::int64_t keys = keys_of_partition(run.kernel, run.problem);
  const Paged paged(run);
  Result<bool> done = run_tasks(shape.kv_heads, run.options.engine.threads, [&](std::int64_t head) {
    return paged.run_head(head, keys, result.out);
  });
  if (!done) return done;
  result.lse.clear();
  result.splits = (shape.kv_len + keys - 1) / keys;
  result.block_columns = run.problem.launch.page_size;
  result.exp_bounded = gpu_exp2(run).bounded();
  return true;
}

}  // namespace kvsim::attention
