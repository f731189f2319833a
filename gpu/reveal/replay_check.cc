// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/replay_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Delta debugging of one sum: terms are set to 0 in pieces as long as the difference stays.
class Shrinker {
 public:
  Shrinker(Reduction& reduction, const SumModel& model, const Observation& observation,
           const Comparison& comparison)
      : reduction_(reduction), model_(model), observation_(observation), comparison_(comparison) {
    const std::int64_t n = reduction.terms();
    left_ = observation.data.left.data() + comparison.row * n;
    right_ = observation.data.right.data() + comparison.column * n;
    if (!reduction.has_left()) left_ = nullptr;
  }

  Result<FailingSum> run() {
    // Pairs that cancel go together: what is left stays nothing but rounding.
    if (const auto done = reduce(pairs()); !done) return done.error();
    std::vector<std::vector<std::int64_t>> single;
    single.reserve(terms_.size());
    for (const std::int64_t k : terms_) single.push_back({k});
    if (const auto done = reduce(std::move(single)); !done) return done.error();
    if (const auto last = try_terms(terms_); !last) return last.error();
    FailingSum failing{comparison_.row, comparison_.column, terms_, {}, {}, seen_, replayed_};
    for (const std::int64_t k : terms_) {
      failing.left.push_back(left_ == nullptr ? 1.0F : left_[k]);
      failing.right.push_back(right_[k]);
    }
    return failing;
  }

 private:
  static constexpr int most_calls = 400;  // for pairs and again for single terms
  using Atoms = std::vector<std::vector<std::int64_t>>;

  /// Terms whose products are each other's negatives, two by two; what has none stands alone.
  [[nodiscard]] Atoms pairs() const {
    Atoms atoms;
    std::map<std::pair<float, float>, std::vector<std::int64_t>> open;
    for (std::int64_t k = 0; k < reduction_.terms(); ++k) {
      const float left = left_ == nullptr ? 1.0F : left_[k];
      const auto found = open.find({left, -right_[k]});
      if (found == open.end() || found->second.empty()) {
        open[{left, right_[k]}].push_back(k);
        continue;
      }
      atoms.push_back({found->second.back(), k});
      found->second.pop_back();
    }
    for (const auto& [factors, alone] : open) {
      for (const std::int64_t k : alone) atoms.push_back({k});
    }
    return atoms;
  }

  static std::vector<std::int64_t> terms_of(const Atoms& atoms) {
    std::vector<std::int64_t> terms;
    for (const auto& atom : atoms) terms.insert(terms.end(), atom.begin(), atom.end());
    std::sort(terms.begin(), terms.end());
    return terms;
  }

  /// Leaves out pieces of the atoms, smaller and smaller ones, as long as the difference stays.
  Result<bool> reduce(Atoms atoms) {
    std::size_t piece = (atoms.size() + 1) / 2;
    int calls = 0;
    while (piece > 0 && atoms.size() > 1 && calls < most_calls) {
      bool smaller = false;
      for (std::size_t begin = 0; begin < atoms.size() && calls < most_calls;) {
        Atoms fewer;
        for (std::size_t i = 0; i < atoms.size(); ++i) {
          if (i < begin || i >= begin + piece) fewer.push_back(atoms[i]);
        }
        ++calls;
        const auto differs = try_terms(terms_of(fewer));
        if (!differs) return differs.error();
        if (*differs) {
          atoms = std::move(fewer);
          smaller = true;
        } else {
          begin += piece;
        }
      }
      if (piece == 1 && !smaller) break;
      piece = piece == 1 ? 1 : (piece + 1) / 2;
    }
    terms_ = terms_of(atoms);
    return true;
  }

  /// The same call, but for the one column: whether the difference is still there.
  Result<bool> try_terms(const std::vector<std::int64_t>& terms) {
    const std::int64_t n = reduction_.terms();
    std::vector<float> right = observation_.data.right;
    float* const column = right.data() + comparison_.column * n;
    std::fill_n(column, n, 0.0F);
    for (const std::int64_t k : terms) column[k] = right_[k];
    const auto sums = reduction_.run(observation_.data.left, right);
    if (!sums) return sums.error();
    const auto again = replay(
        model_, n, std::span(observation_.data.left).subspan(index(comparison_.row * n), index(n)),
        std::span(std::as_const(right)).subspan(index(comparison_.column * n), index(n)));
    if (!again) return again.error();
    seen_ = (*sums)[index(comparison_.row * reduction_.columns() + comparison_.column)];
    replayed_ = again->front();
    return !same_bits(seen_, replayed_);
  }

  Reduction& reduction_;
  const SumModel& model_;
  const Observation& observation_;
  const Comparison& comparison_;
  std::vector<std::int64_t> terms_;
  const float* left_ = nullptr;
  const float* right_ = nullptr;
  float seen_ = 0;
  float replayed_ = 0;
};

}  // namespace

Result<Observation> observe(Reduction& reduction, DataKind kind, std::uint64_t seed,
                            std::uint64_t number) {
  Observation observation;
  observation.data = cancel_data(reduction, kind, seed, number);
  auto sums = reduction.run(observation.data.left, observation.data.right);
  if (!sums) return sums.error();
  observation.sums = std::move(*sums);
  return observation;
}

Result<Comparison> compare(const Reduction& reduction, const SumModel& model, const SumClass& sums,
                           const Observation& observation) {
  const auto again =
      replay(model, reduction.terms(), observation.data.left, observation.data.right, &sums);
  if (!again) return again.error();
  Comparison comparison;
  for (const std::int64_t i : sums.rows) {
    for (const std::int64_t j : sums.columns) {
      const std::size_t at = index(i * reduction.columns() + j);
      ++comparison.compared;
      if (same_bits(observation.sums[at], (*again)[at])) continue;
      if (comparison.different++ == 0) {
        comparison.row = i;
        comparison.column = j;
      }
    }
  }
  return comparison;
}

Result<FailingSum> shrink(Reduction& reduction, const SumModel& model,
                          const Observation& observation, const Comparison& comparison) {
  return Shrinker(reduction, model, observation, comparison).run();
}

}  // namespace kvsim::gpu
