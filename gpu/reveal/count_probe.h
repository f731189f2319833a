// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/reveal/probe_calls.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/tree_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// A set of terms that probes count.
using TermSet = std::shared_ptr<const std::vector<std::int32_t>>;

/// One question: with masks at two terms, how many of `counted` (the masks left out) are still
/// there at the end?
struct CountProbe {
  std::int32_t plus = -1;   ///< the term of +M; −1: no masks
  std::int32_t minus = -1;  ///< the term of −M
  TermSet counted;
};

/// Asks many such questions in as few calls as possible.
class CountProbes {
 public:
  /// The reduction must outlive it; its output format must be known.
  CountProbes(Reduction& reduction, const SumClass& sums);

  /// How many terms can be counted at once: 2 or more.
  [[nodiscard]] std::int64_t limit() const { return limit_; }
  /// Whether one call can hold probes of one term with several others that are themselves compared.
  [[nodiscard]] bool mixes_pivots() const { return !split_; }
  /// Sums that one call answers.
  [[nodiscard]] std::int64_t capacity() const { return calls_.capacity(); }
  /// Sums looked at so far.
  [[nodiscard]] std::int64_t sums() const { return calls_.sums(); }

  /// The counts, in the order of the probes. Errors (cannot_tell): a sum that is no such count.
  [[nodiscard]] Result<std::vector<std::int64_t>> measure(const std::vector<CountProbe>& probes);

 private:
  /// The part of a probe that one call sees: term k is counted where its highest bit that differs
  /// from that of `minus` is `bit`; bit < 0: all.
  struct Part {
    std::size_t probe = 0;
    int bit = -1;
  };
  Result<bool> add_counts(const std::vector<CountProbe>& probes, const std::vector<Part>& parts,
                          const std::vector<float>& shared, std::vector<std::int64_t>& counts);
  void write(const CountProbe& probe, int bit, float* vector) const;

  Reduction& reduction_;
  ProbeCalls calls_;
  bool split_ = false;  // each factor carries half of a mask
  float mask_ = 0;
  float counted_ = 0;
  float other_ = 0;
  float shared_small_ = 1;
  float shared_large_ = 1;
  std::int64_t limit_ = 2;
};

}  // namespace kvsim::gpu
