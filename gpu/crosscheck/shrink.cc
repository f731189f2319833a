// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/shrink.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "gpu/crosscheck/observed.h"

namespace kvsim::gpu {
namespace {

/// A number of the inputs.
struct Place {
  std::size_t input;
  std::size_t index;
};

/// What the two sides gave at the result.
struct Pair {
  float seen = 0;
  float simulated = 0;
  [[nodiscard]] bool differs() const { return !same_bits(seen, simulated); }
};

/// Whether the result at `index` can depend on number `at` of an input.
bool reaches(const Check& check, std::int64_t index, std::size_t input, std::int64_t at) {
  if (check.operation == "linear") {
    const std::int64_t row = input == 0 ? index / check.outputs : index % check.outputs;
    return at / check.terms == row;
  }
  if (check.is_attention()) {
    const std::int64_t query = index / check.head_dim;
    const std::int64_t head = query / check.queries;
    if (input == 0) return at / check.head_dim == query;
    return at / (check.keys * check.head_dim) == head / (check.heads / check.kv_heads);
  }
  if (check.operation == "sum" || check.operation == "mean") return at / check.terms == index;
  if (check.operation == "softmax" || check.operation == "rms-norm") {
    return input == 1 ? at == index % check.terms : at / check.terms == index / check.terms;
  }
  return at == index;
}

class Shrinker {
 public:
  Shrinker(Backend& backend, Simulation& simulation, const Check& check, std::int64_t index,
           int most_runs)
      : backend_(backend),
        simulation_(simulation),
        check_(check),
        index_(static_cast<std::size_t>(index)),
        runs_(most_runs) {}

  Result<FailingTensors> shrink(std::vector<Tensor> inputs);

 private:
  Result<Pair> run(const std::vector<Tensor>& inputs) {
    --runs_;
    const auto seen = observe(backend_, check_, inputs);
    if (!seen) return seen.error();
    const auto simulated = simulation_.run(check_, inputs);
    if (!simulated) return simulated.error();
    return Pair{seen->values[index_], simulated->values[index_]};
  }
  /// Sets these places to 0; true where the result still differs, otherwise they keep their values.
  Result<bool> drop(std::vector<Tensor>& inputs, std::span<const Place> places) {
    std::vector<float> kept;
    kept.reserve(places.size());
    for (const Place& place : places) {
      kept.push_back(std::exchange(inputs[place.input].values[place.index], 0.0F));
    }
    const auto pair = run(inputs);
    if (pair && pair->differs()) {
      last_ = *pair;
      return true;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      inputs[places[i].input].values[places[i].index] = kept[i];
    }
    if (!pair) return pair.error();
    return false;
  }

  Backend& backend_;
  Simulation& simulation_;
  Check check_;
  std::size_t index_;
  int runs_;
  Pair last_;
};

Result<FailingTensors> Shrinker::shrink(std::vector<Tensor> inputs) {
  const auto first = run(inputs);
  if (!first) return first.error();
  last_ = *first;
  std::vector<Place> unreached;
  std::vector<Place> left;
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    for (std::size_t at = 0; at < inputs[input].values.size(); ++at) {
      if (inputs[input].values[at] == 0) continue;
      const bool counts =
          reaches(check_, static_cast<std::int64_t>(index_), input, static_cast<std::int64_t>(at));
      (counts ? left : unreached).push_back({input, at});
    }
  }
  const auto dropped = drop(inputs, unreached);
  if (!dropped) return dropped.error();
  for (std::size_t part = (left.size() + 1) / 2; part > 0 && runs_ > 0;) {
    bool shorter = false;
    for (std::size_t begin = 0; begin < left.size() && runs_ > 0;) {
      const std::size_t end = std::min(left.size(), begin + part);
      const auto done = drop(inputs, std::span(left).subspan(begin, end - begin));
      if (!done) return done.error();
      if (*done) {
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(begin),
                   left.begin() + static_cast<std::ptrdiff_t>(end));
        shorter = true;
      } else {
        begin = end;
      }
    }
    if (part == 1 && !shorter) break;
    part = shorter && part == 1 ? 1 : part / 2;
  }
  FailingTensors failing{.numbers = {},
                         .index = static_cast<std::int64_t>(index_),
                         .seen = last_.seen,
                         .simulated = last_.simulated};
  failing.numbers.reserve(left.size());
  for (const Place& place : left) {
    failing.numbers.push_back({place.input, static_cast<std::int64_t>(place.index),
                               inputs[place.input].values[place.index]});
  }
  return failing;
}

}  // namespace

bool same_bits(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

Result<FailingTensors> shrink(Backend& backend, Simulation& simulation, const Check& check,
                              std::vector<Tensor> inputs, std::int64_t index, int most_runs) {
  return Shrinker(backend, simulation, check, index, most_runs).shrink(std::move(inputs));
}

}  // namespace kvsim::gpu
