// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/reveal/reduction.h"
#include "gpu/reveal/tree_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// Puts sums that share one factor of each product side by side into the calls of a reduction: into
/// the columns of a class of sums, or into its rows where those are more.
class ProbeCalls {
 public:
  /// Terms with their factors; all others are 0.
  using Sparse = std::vector<std::pair<std::int32_t, float>>;

  /// Both must outlive it.
  ProbeCalls(Reduction& reduction, const SumClass& sums);

  /// Sums of one call.
  [[nodiscard]] std::int64_t capacity() const;
  [[nodiscard]] std::int64_t terms() const { return reduction_.terms(); }
  /// Sums asked for so far.
  [[nodiscard]] std::int64_t sums() const { return sums_; }

  /// One call: the sums of `vectors` [capacity()][terms], of which the first `used` come back, with
  /// the factors `shared` [terms].
  [[nodiscard]] Result<std::vector<float>> run(const std::vector<float>& shared,
                                               const std::vector<float>& vectors,
                                               std::int64_t used);
  /// As many calls as it takes.
  [[nodiscard]] Result<std::vector<float>> run(const std::vector<float>& shared,
                                               const std::vector<Sparse>& vectors);

 private:
  Reduction& reduction_;
  const SumClass& class_;
  bool in_rows_ = false;
  std::int64_t sums_ = 0;
};

}  // namespace kvsim::gpu
