// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "fuzz/flip/mutate.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/shrink_steps.h"

namespace kvsim::fuzz {
namespace {

// How finely an axis or a tensor is cut at last: into at most so many parts.
constexpr std::int64_t most_axis_parts = 64;
constexpr std::int64_t most_rounded_parts = 16;
constexpr std::int64_t most_tensor_parts = 256;

bool is_smaller(const CaseSize& a, const CaseSize& b) {
  return std::tie(a.numbers, a.splits, a.significant_bits) <
         std::tie(b.numbers, b.splits, b.significant_bits);
}

class Shrinker {
 public:
  Shrinker(Target target, const ShrinkLimits& limits, const std::function<void(double)>& progress)
      : objective_(objective(target)), limits_(limits), progress_(progress) {}

  Result<ShrunkCase> run(const FlipCase& flip_case, double floor) {
    const auto scorer = FlipScorer::make(flip_case.shape);
    if (!scorer) return scorer.error();
    best_.flip_case = flip_case;
    best_.score = scorer->score(flip_case);
    const auto confirmation = confirm(*scorer, flip_case);
    if (!confirmation) return confirmation.error();
    best_.confirmation = *confirmation;
    best_.claim = objective_.confirmed_claim(flip_case, best_.score, *confirmation);
    if (!best_.claim.holds()) {
      return Error{ErrorKind::cannot_tell, fmt::format("there is nothing to shrink: no {}",
                                                       to_string(flip_case.shape.target))};
    }
    best_.value_before = best_.claim.value;
    best_.floor = floor > 0             ? floor
                  : flip_case.floor > 0 ? flip_case.floor
                                        : default_floor_share * best_.value_before;
    if (best_.value_before < best_.floor) {
      return Error{ErrorKind::cannot_tell,
                   fmt::format("{:.3g} {} is below the floor of {:.3g}", best_.value_before,
                               objective_.unit, best_.floor)};
    }
    best_.before = size_of(*scorer, flip_case);
    best_.after = best_.before;
    while (pass()) {
    }
    best_.flip_case.floor = best_.floor;
    best_.scores = scores_;
    best_.complete = !is_over();
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool is_over() const {
    return scores_ >= limits_.scores || numbers_ >= limits_.numbers;
  }

  /// All steps once, the large ones first; whether one was kept.
  bool pass() {
    bool changed = false;
    for (std::int64_t parts = 2; parts <= most_axis_parts; parts *= 2) {
      while (cut(parts)) changed = true;
    }
    changed |= round_along_axes();
    for (std::size_t t = 0; t < case_tensors; ++t) changed |= simplify(static_cast<CaseTensor>(t));
    return changed && !is_over();
  }

  /// Fewer splits, and every axis without one of so many parts of it.
  bool cut(std::int64_t parts) {
    bool changed = false;
    for (const std::size_t path : {path_on, path_off}) changed |= join_splits(path);
    for (const CaseAxis axis : all_axes) changed |= shorten(axis, parts);
    return changed && !is_over();
  }

  bool shorten(CaseAxis axis, std::int64_t parts) {
    const auto length = [&] { return length_along(best_.flip_case.shape, axis); };
    const std::int64_t size = length() / parts;
    if (size == 0) return false;
    bool changed = false;
    for (std::int64_t begin = 0; begin < length() && !is_over();) {
      const std::int64_t count = std::min(size, length() - begin);
      const bool kept =
          count < length() && keep(without(best_.flip_case, axis, {begin, count}), tries_of_axis);
      if (!kept) begin += count;
      changed |= kept;
    }
    return changed;
  }

  /// Fewer bits in every number of a part of an axis at once: of the whole case first, then of some
  /// elements of all heads, of some keys.
  bool round_along_axes() {
    bool changed = false;
    for (std::int64_t parts = 1; parts <= most_rounded_parts; parts *= 2) {
      for (const CaseAxis axis : all_axes) {
        const std::int64_t length = length_along(best_.flip_case.shape, axis);
        const std::int64_t size = length / parts;
        for (std::int64_t begin = 0; size > 0 && begin < length; begin += size) {
          changed |= round_part(axis, {begin, std::min(size, length - begin)});
        }
      }
    }
    return changed;
  }

  /// As few bits as the part's numbers can have, up to half of what they may have.
  bool round_part(CaseAxis axis, const CasePart& part) {
    for (int bits = 0; 2 * bits <= best_.flip_case.shape.storage.precision + 1; ++bits) {
      if (is_over()) return false;
      FlipCase candidate = with_fewer_bits(best_.flip_case, axis, part, bits);
      if (candidate == best_.flip_case) return false;
      if (keep(std::move(candidate), tries_of_numbers)) return true;
    }
    return false;
  }

  bool simplify(CaseTensor tensor) {
    const auto whole = static_cast<std::int64_t>(best_.flip_case[tensor].size());
    bool changed = false;
    for (int bits = 0; bits < best_.flip_case.shape.storage.precision;
         bits += bits < 2 ? 1 : bits) {
      for (std::int64_t size = whole; size > 0 && whole <= size * most_tensor_parts; size /= 2) {
        for (std::int64_t begin = 0; begin < whole && !is_over(); begin += size) {
          const CasePart part{begin, std::min(size, whole - begin)};
          FlipCase candidate = with_fewer_bits(best_.flip_case, tensor, part, bits);
          if (candidate[tensor] == best_.flip_case[tensor]) continue;
          changed |= keep(std::move(candidate), tries_of_numbers);
        }
      }
    }
    return changed;
  }

  /// One split, two, or half as many as there are.
  bool join_splits(std::size_t path) {
    for (const std::int64_t fewer : {1, 2, 0}) {
      const auto scorer = FlipScorer::make(best_.flip_case.shape);
      if (!scorer || is_over()) return false;
      const std::int64_t splits = scorer->splits(path);
      const std::int64_t wanted = fewer > 0 ? fewer : splits / 2;
      if (wanted >= splits || wanted < 1) continue;
      FlipCase candidate = best_.flip_case;
      candidate.shape = with_splits(candidate.shape, path, wanted);
      if (keep(std::move(candidate), tries_of_axis)) return true;
    }
    return false;
  }

  /// Keeps the candidate, or what it becomes when its tokens are moved, if it may take the place of
  /// the best case.
  bool keep(FlipCase candidate, int tries) {
    const auto scorer = FlipScorer::make(candidate.shape);
    if (!scorer) return false;
    const ValueFitter fitter(candidate.shape.storage);
    const Mutator mutator(*scorer, fitter);
    FlipScore score = note_score(*scorer, candidate);
    for (int i = 0;; ++i) {
      if (is_better(*scorer, candidate, score)) return true;
      if (i == tries || !objective_.seeks_ties || is_over()) return false;
      Random random({.stream = static_cast<std::uint64_t>(i)});
      mutator.move_margin(score, candidate, i % 2 == 1, random);
      score = note_score(*scorer, candidate);
    }
  }

  FlipScore note_score(const FlipScorer& scorer, const FlipCase& candidate) {
    ++scores_;
    for (const auto& tensor : candidate.tensors) {
      numbers_ += static_cast<std::int64_t>(tensor.size());
    }
    if (progress_) {
      progress_(std::max(static_cast<double>(scores_) / static_cast<double>(limits_.scores),
                         static_cast<double>(numbers_) / static_cast<double>(limits_.numbers)));
    }
    return scorer.score(candidate);
  }

  bool is_better(const FlipScorer& scorer, const FlipCase& candidate, const FlipScore& score) {
    const auto suffices = [&](const Claim& claim) { return claim.value >= best_.floor; };
    if (!suffices(objective_.claim(candidate, score))) return false;
    const CaseSize size = size_of(scorer, candidate);
    if (!is_smaller(size, best_.after)) return false;
    const auto confirmation = confirm(scorer, candidate);
    if (!confirmation) return false;
    const Claim claim = objective_.confirmed_claim(candidate, score, *confirmation);
    if (!suffices(claim)) return false;
    best_.claim = claim;
    best_.flip_case = candidate;
    best_.score = score;
    best_.confirmation = *confirmation;
    best_.after = size;
    return true;
  }

  static constexpr int tries_of_axis = 4;
  static constexpr int tries_of_numbers = 1;

  const Objective& objective_;
  const ShrinkLimits& limits_;
  const std::function<void(double)>& progress_;
  ShrunkCase best_;
  std::int64_t scores_ = 0;
  std::int64_t numbers_ = 0;
};

}  // namespace

int significant_bits(float x) {
  int exponent = 0;
  float rest = std::abs(std::frexp(x, &exponent));
  int bits = 0;
  while (rest != 0) {
    rest = 2 * rest;
    rest -= std::trunc(rest);
    ++bits;
  }
  return bits;
}

CaseSize size_of(const FlipScorer& scorer, const FlipCase& flip_case) {
  const CaseShape& shape = flip_case.shape;
  CaseSize size;
  const bool sum = shape.kind == CaseKind::sum;
  size.keys = sum ? shape.terms : shape.attention.kv_len;
  size.head_dim = sum ? 0 : shape.attention.head_dim;
  size.query_heads = sum ? 0 : shape.attention.query_heads;
  for (const auto& tensor : flip_case.tensors) {
    size.numbers += static_cast<std::int64_t>(tensor.size());
    for (const float x : tensor) {
      size.nonzero += x != 0 ? 1 : 0;
      size.significant_bits += significant_bits(x);
    }
  }
  size.splits = scorer.splits(path_on) + scorer.splits(path_off);
  return size;
}

Result<ShrunkCase> shrink(const FlipCase& flip_case, double floor, const ShrinkLimits& limits,
                          const std::function<void(double)>& progress) {
  return Shrinker(flip_case.shape.target, limits, progress).run(flip_case, floor);
}

}  // namespace kvsim::fuzz
