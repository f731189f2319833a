// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/attention_replay.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "gpu/attention_attributes.h"
#include "gpu/reveal/attention/attention_data.h"
#include "gpu/sim_backend.h"
#include "sim/attention/kernel.h"
#include "sim/attention/problem.h"
#include "sim/attention/value_tree.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// What of a call's attributes a kernel of the table takes.
AttentionLayer for_kernel(AttentionLayer layer) {
  std::erase_if(layer.attributes, [](const auto& attribute) {
    return attribute.first != "causal" && attribute.first != "scale" &&
           attribute.first != "splits" && attribute.first != "split-size";
  });
  return layer;
}

/// The tree of P·V that a kernel declares for the last query.
std::optional<AdditionTree> declared_tree(const AttentionKernel& kernel,
                                          const AttentionLayer& layer) {
  AttentionProblem problem;
  problem.shape = layer.shape;
  problem.storage = layer.format;
  if (!set_attention_attributes(layer.attributes, problem)) return {};
  const auto tree = value_tree(kernel, problem, layer.shape.query_len - 1);
  if (!tree) return {};
  return addition_tree(*tree);
}

/// A kernel under comparison.
struct Candidate {
  std::unique_ptr<Backend> backend;
  KernelAgreement agreement;
  std::optional<std::uint64_t> first_difference;  ///< number of the data
};

class Replay {
 public:
  Replay(AttentionCalls& calls, const AttentionReplayOptions& options)
      : calls_(calls), options_(options), layer_(for_kernel(calls.layer())) {}

  Result<AttentionReplay> run(const std::optional<AdditionTree>& tree) {
    std::vector<Candidate> same;
    std::vector<Candidate> others;
    for (const AttentionKernel& kernel : attention_kernels()) {
      auto backend = make_sim_backend(kernel.name);
      if (!backend) return backend.error();
      const auto declared = declared_tree(kernel, layer_);
      const bool agrees = tree && declared && *tree == *declared;
      Candidate candidate{std::move(*backend), {std::string(kernel.name), agrees, 0, 0}, {}};
      (agrees ? same : others).push_back(std::move(candidate));
    }
    AttentionReplay found;
    for (std::vector<Candidate>* const group : {&same, &others}) {
      if (const auto done = compare(*group); !done) return done.error();
      std::erase_if(*group, [](const Candidate& one) { return one.agreement.compared == 0; });
      for (const Candidate& one : *group) found.kernels.push_back(one.agreement);
      if (found.explained()) break;
    }
    std::ranges::sort(found.kernels, {}, [](const KernelAgreement& one) {
      return std::pair(static_cast<double>(one.different) / static_cast<double>(one.compared),
                       std::string_view(one.kernel));
    });
    if (found.explained() || found.kernels.empty()) return found;
    for (const std::vector<Candidate>* const group : {&same, &others}) {
      for (const Candidate& one : *group) {
        if (one.agreement.kernel != found.kernels.front().kernel) continue;
        auto failing = shrink(one);
        if (!failing) return failing.error();
        found.failing = std::move(*failing);
      }
    }
    return found;
  }

 private:
  /// A kernel that differed in one call is not asked again.
  Result<bool> compare(std::vector<Candidate>& candidates) {
    const std::int64_t outputs =
        layer_.shape.query_heads * layer_.shape.query_len * layer_.shape.head_dim;
    const std::int64_t numbers =
        std::max<std::int64_t>(3, (options_.least_outputs + outputs - 1) / outputs);
    for (std::int64_t i = 0; i < numbers && !candidates.empty(); ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      const AttentionOperands data = attention_data(layer_, options_.seed, number);
      std::optional<std::vector<float>> seen;
      for (Candidate& one : candidates) {
        if (one.first_difference) continue;
        const auto again = replayed(one, data);
        if (!again) {
          if (i == 0) continue;  // a layer that the kernel does not have
          return again.error();
        }
        if (!seen) {
          auto outputs_seen = calls_.run(data);
          if (!outputs_seen) return outputs_seen.error();
          seen = std::move(*outputs_seen);
        }
        count(*again, *seen, one.agreement);
        if (one.agreement.different > 0) one.first_difference = number;
      }
      std::erase_if(candidates, [](const Candidate& one) { return one.agreement.compared == 0; });
    }
    return true;
  }

  static void count(const std::vector<float>& again, const std::vector<float>& seen,
                    KernelAgreement& agreement) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ++agreement.compared;
      if (i >= again.size() || !same_bits(seen[i], again[i])) ++agreement.different;
    }
  }

  [[nodiscard]] Result<std::vector<float>> replayed(const Candidate& candidate,
                                                    AttentionOperands data) const {
    auto result = candidate.backend->run(attention_call(layer_, std::move(data)));
    if (!result) return result.error();
    return std::move(result->values);
  }

  /// The first output that is another number, or where there is none of another sign; −1: none.
  static std::int64_t first_difference(const std::vector<float>& seen,
                                       const std::vector<float>& again) {
    std::int64_t of_signs = -1;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (same_bits(seen[i], again[i])) continue;
      if (seen[i] != again[i]) return static_cast<std::int64_t>(i);
      if (of_signs < 0) of_signs = static_cast<std::int64_t>(i);
    }
    return of_signs;
  }

  /// All keys, with those side by side whose values in a column of V cancel.
  [[nodiscard]] std::vector<std::int64_t> keys_in_pairs(const float* column) const {
    std::vector<std::int64_t> keys(index(layer_.shape.kv_len));
    std::iota(keys.begin(), keys.end(), 0);
    std::ranges::sort(keys, {}, [&](std::int64_t key) {
      return std::pair(std::fabs(column[key * layer_.shape.head_dim]), key);
    });
    return keys;
  }

  void clear_key(AttentionOperands& data, std::int64_t key) const {
    const AttentionShape& shape = layer_.shape;
    for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
      const auto row = static_cast<std::ptrdiff_t>((head * shape.kv_len + key) * shape.head_dim);
      std::fill_n(data.v.begin() + row, shape.head_dim, 0.0F);
    }
  }

  /// Delta debugging of the first output that differs: values of its column are set to 0 in pieces
  /// as long as the difference stays.
  Result<FailingOutput> shrink(const Candidate& candidate) {
    const AttentionShape& shape = layer_.shape;
    AttentionOperands data;
    std::int64_t place = -1;
    bool numbers = false;
    FailingOutput failing;
    failing.kernel = candidate.agreement.kernel;
    const auto differs = [&](const AttentionOperands& tried) -> Result<bool> {
      const auto seen = calls_.run(tried);
      if (!seen) return seen.error();
      const auto again = replayed(candidate, tried);
      if (!again) return again.error();
      if (place < 0) place = first_difference(*seen, *again);
      if (place < 0) return false;
      const float was = (*seen)[index(place)];
      const float would_be = (*again)[index(place)];
      // Two zeros of different sign are no smaller case of two numbers.
      if (same_bits(was, would_be) || (was == would_be && numbers)) return false;
      numbers = was != would_be;
      failing.seen = was;
      failing.replayed = would_be;
      return true;
    };
    // As few keys as possible to begin with, in pairs that cancel: of many numbers none can be left
    // out where only their sum differs.
    const AttentionOperands whole =
        attention_data(layer_, options_.seed, candidate.first_difference.value_or(0));
    const std::vector<std::int64_t> paired = keys_in_pairs(whole.v.data());
    for (std::size_t count = 2; !numbers; count *= 2) {
      place = -1;
      data = whole;
      for (std::size_t i = count; i < paired.size(); ++i) clear_key(data, paired[i]);
      const auto found = differs(data);
      if (!found) return found.error();
      if (count >= paired.size()) break;
    }
    if (place < 0) return failing;  // a back end that does not repeat
    failing.element = place % shape.head_dim;
    failing.query = place / shape.head_dim % shape.query_len;
    failing.head = place / shape.head_dim / shape.query_len;
    float* const column = data.v.data() +
                          failing.head / shape.group() * shape.kv_len * shape.head_dim +
                          failing.element;
    std::vector<std::int64_t> keys = keys_in_pairs(column);
    std::erase_if(keys, [&](std::int64_t key) { return column[key * shape.head_dim] == 0; });
    int calls = 0;
    for (std::size_t piece = std::bit_ceil(keys.size()) / 2; piece > 0 && calls < most_calls;) {
      bool smaller = false;
      for (std::size_t begin = 0; begin < keys.size() && calls < most_calls;) {
        const std::size_t end = std::min(begin + piece, keys.size());
        std::vector<float> kept;
        for (std::size_t i = begin; i < end; ++i) {
          kept.push_back(std::exchange(column[keys[i] * shape.head_dim], 0.0F));
        }
        ++calls;
        const auto still = differs(data);
        if (!still) return still.error();
        if (*still) {
          keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(begin),
                     keys.begin() + static_cast<std::ptrdiff_t>(end));
          smaller = true;
          continue;
        }
        for (std::size_t i = begin; i < end; ++i) {
          column[keys[i] * shape.head_dim] = kept[i - begin];
        }
        begin = end;
      }
      if (piece == 1 && !smaller) break;
      piece = std::max<std::size_t>(1, piece / 2);
    }
    std::ranges::sort(keys);
    if (const auto last = differs(data); !last) return last.error();
    failing.keys = keys;
    for (const std::int64_t key : keys) failing.values.push_back(column[key * shape.head_dim]);
    return failing;
  }

  static constexpr int most_calls = 120;

  AttentionCalls& calls_;
  AttentionReplayOptions options_;
  AttentionLayer layer_;
};

}  // namespace

bool AttentionReplay::explained() const {
  return std::ranges::any_of(
      kernels, [](const KernelAgreement& one) { return one.compared > 0 && one.different == 0; });
}

Result<AttentionReplay> replay_attention(AttentionCalls& calls,
                                         const std::optional<AdditionTree>& tree,
                                         const AttentionReplayOptions& options) {
  return Replay(calls, options).run(tree);
}

}  // namespace kvsim::gpu
