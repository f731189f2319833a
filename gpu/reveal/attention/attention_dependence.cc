// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/attention_dependence.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "gpu/reveal/attention/attention_data.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// Runs one layer again and again with something changed.
class Changes {
 public:
  Changes(Backend& backend, const AttentionLayer& layer, std::uint64_t seed)
      : backend_(backend),
        layer_(layer),
        // Rounding of P·V is all that is left, which any change of order moves.
        data_(attention_data(layer, seed, 0)),
        other_(attention_data(layer, seed, 3)) {}

  Result<bool> start() { return store(call(layer_, data_, 0), seen_); }

  /// The same numbers; all outputs are compared.
  Result<bool> again(std::string what, std::int64_t misalignment = 0) {
    std::vector<float> outputs;
    if (const auto done = store(call(layer_, data_, misalignment), outputs); !done) return done;
    compare(std::move(what), outputs, [](std::int64_t, std::int64_t) { return true; });
    return true;
  }

  /// Other numbers in all queries but the last.
  Result<bool> other_queries() {
    const AttentionShape& shape = layer_.shape;
    AttentionOperands data = data_;
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const auto begin = static_cast<std::ptrdiff_t>(head * shape.query_len * shape.head_dim);
      std::copy_n(other_.q.begin() + begin, (shape.query_len - 1) * shape.head_dim,
                  data.q.begin() + begin);
    }
    return changed("numbers of the other queries", shape.query_len > 1, data,
                   [&](std::int64_t, std::int64_t query) { return query == shape.query_len - 1; });
  }

  /// Other numbers in all heads but those of the first K/V head.
  Result<bool> other_heads() {
    const AttentionShape& shape = layer_.shape;
    AttentionOperands data = other_;
    std::copy_n(data_.q.begin(), shape.group() * shape.query_len * shape.head_dim, data.q.begin());
    std::copy_n(data_.k.begin(), shape.kv_len * shape.head_dim, data.k.begin());
    std::copy_n(data_.v.begin(), shape.kv_len * shape.head_dim, data.v.begin());
    return changed("numbers of the other heads", shape.kv_heads > 1, data,
                   [&](std::int64_t head, std::int64_t) { return head < shape.group(); });
  }

  /// The last query in a call of its own, which sees every key under either mask.
  Result<bool> last_query_alone() {
    const AttentionShape& shape = layer_.shape;
    AttentionLayer alone = layer_;
    alone.shape.query_len = 1;
    alone.attributes.erase("causal");
    AttentionOperands data = data_;
    data.q.clear();
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const auto from =
          static_cast<std::ptrdiff_t>(((head + 1) * shape.query_len - 1) * shape.head_dim);
      data.q.insert(data.q.end(), data_.q.begin() + from,
                    data_.q.begin() + from + static_cast<std::ptrdiff_t>(shape.head_dim));
    }
    Dependence found{.what = "the last query alone", .possible = shape.query_len > 1};
    if (found.possible) {
      std::vector<float> outputs;
      if (const auto done = store(call(alone, data, 0), outputs); !done) return done;
      for (std::int64_t head = 0; head < shape.query_heads; ++head) {
        const std::int64_t own = (head + 1) * shape.query_len - 1;
        count(found, seen_.data() + own * shape.head_dim, outputs.data() + head * shape.head_dim);
      }
    }
    found_.push_back(std::move(found));
    return true;
  }

  /// The other mask; only the last query sees the same keys under both.
  Result<bool> other_mask() {
    AttentionLayer other = layer_;
    other.attributes["causal"] = layer_.causal() ? "0" : "1";
    const std::string what = layer_.causal() ? "no causal mask" : "a causal mask";
    const auto outputs = call(other, data_, 0);
    if (!outputs && outputs.error().kind != ErrorKind::usage) return outputs.error();
    if (!outputs) {  // a mask that the back end does not have for these sizes
      found_.push_back({.what = what, .possible = false});
      return true;
    }
    compare(what, *outputs,
            [&](std::int64_t, std::int64_t query) { return query == layer_.shape.query_len - 1; });
    return true;
  }

  void impossible(std::string what) {
    found_.push_back({.what = std::move(what), .possible = false});
  }
  std::vector<Dependence> found() { return std::move(found_); }

 private:
  using Looked = std::function<bool(std::int64_t head, std::int64_t query)>;

  Result<std::vector<float>> call(const AttentionLayer& layer, const AttentionOperands& data,
                                  std::int64_t misalignment) {
    return AttentionCalls(backend_, layer).run(data, misalignment);
  }
  static Result<bool> store(Result<std::vector<float>> outputs, std::vector<float>& to) {
    if (!outputs) return outputs.error();
    to = std::move(*outputs);
    return true;
  }

  Result<bool> changed(std::string what, bool possible, const AttentionOperands& data,
                       const Looked& looked) {
    if (!possible) {
      impossible(std::move(what));
      return true;
    }
    const auto outputs = call(layer_, data, 0);
    if (!outputs) return outputs.error();
    compare(std::move(what), *outputs, looked);
    return true;
  }

  /// One head's output of one query.
  void count(Dependence& found, const float* before, const float* after) const {
    for (std::int64_t i = 0; i < layer_.shape.head_dim; ++i) {
      ++found.compared;
      const bool equal =
          std::bit_cast<std::uint32_t>(before[i]) == std::bit_cast<std::uint32_t>(after[i]);
      found.different += equal ? 0 : 1;
    }
  }
  void compare(std::string what, const std::vector<float>& outputs, const Looked& looked) {
    const AttentionShape& shape = layer_.shape;
    Dependence found{.what = std::move(what)};
    for (std::int64_t row = 0; row < shape.query_heads * shape.query_len; ++row) {
      if (!looked(row / shape.query_len, row % shape.query_len)) continue;
      const std::size_t first = index(row * shape.head_dim);
      count(found, seen_.data() + first, outputs.data() + first);
    }
    found_.push_back(std::move(found));
  }

  Backend& backend_;
  const AttentionLayer& layer_;
  AttentionOperands data_;
  AttentionOperands other_;
  std::vector<float> seen_;
  std::vector<Dependence> found_;
};

}  // namespace

Result<std::vector<Dependence>> attention_dependences(Backend& backend, const AttentionLayer& layer,
                                                      std::int64_t threads, std::uint64_t seed) {
  Changes changes(backend, layer, seed);
  if (const auto done = changes.start(); !done) return done.error();
  if (const auto done = changes.again("the same call again"); !done) return done.error();
  const std::string of_threads = threads == 2 ? "1 thread" : "2 threads";
  if (backend.set_threads(threads == 2 ? 1 : 2)) {
    const auto done = changes.again(of_threads);
    const auto set = backend.set_threads(threads);
    if (!done) return done.error();
    if (!set) return set.error();
  } else {
    changes.impossible(of_threads);
  }
  if (const auto done = changes.other_queries(); !done) return done.error();
  if (const auto done = changes.other_heads(); !done) return done.error();
  if (const auto done = changes.last_query_alone(); !done) return done.error();
  if (const auto done = changes.other_mask(); !done) return done.error();
  const std::int64_t bytes = (layer.format.width() + 7) / 8;
  for (const std::int64_t elements : {1, 2, 4}) {
    const auto done =
        changes.again(fmt::format("k, v {} bytes off", elements * bytes), elements * bytes);
    if (!done) return done.error();
  }
  return changes.found();
}

}  // namespace kvsim::gpu
