// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/score.h"
#include "sim/double_double.h"
#include "softfloat/result.h"

/// Which roundings decide a flip.
///
/// A rounding's error is what it gives less the exact result of what it was given. Making it exact
/// takes its error away: everything after it is then computed with what comes in, while every other
/// rounding keeps the error that it had. With nothing exact that gives the path's own bits, with
/// everything exact the exact result, and no rounding decides by chance, as it could if those after
/// it were made anew.
namespace kvsim::fuzz {

/// One rounding, or all roundings of one step of a kernel.
struct Rounding {
  std::string place;  ///< "token 0, root/1/0" or "query head 0, keys 128..255"
  std::string step;   ///< "terms 0..31 + 32..63" or "P·V"
  double error_ulp =
      0;              ///< its error, of a step the largest one, in units of the result's last place
  double effect = 0;  ///< logits: the path's difference less what it is with this one exact
  bool decisive = false;

  // Where a picture shows it. Sums: the token, and the node of the tree. Attention: the query head,
  // and the block among those of all splits.
  std::int64_t group = 0;
  std::int64_t number = 0;
};

/// The roundings of the path that errs.
struct Blame {
  std::size_t path = path_on;
  double error = 0;         ///< logits: the path's difference less the exact one
  std::int64_t erring = 0;  ///< roundings with an error
  std::int64_t alone = 0;   ///< of these, how many would undo the flip if they alone were exact
  /// In the order of the computation. The decisive ones undo the flip together if they are exact,
  /// and none of them can be left out.
  std::vector<Rounding> roundings;
};

/// Errors (cannot_tell): no flip; numbers that are not finite; roundings that do not add up to the
/// path's result, which would be a defect. (usage): an attention kernel that there is none of.
[[nodiscard]] Result<Blame> blame(const FlipScorer& scorer, const FlipCase& flip_case);

/// The roundings of one path, any of which can be made exact.
class RoundingModel {
 public:
  RoundingModel() = default;
  RoundingModel(const RoundingModel&) = delete;
  RoundingModel& operator=(const RoundingModel&) = delete;
  virtual ~RoundingModel() = default;

  /// The roundings, without effects.
  [[nodiscard]] virtual std::vector<Rounding> roundings() const = 0;
  /// The difference of the logits with some roundings exact; one flag for each.
  [[nodiscard]] virtual DoubleDouble difference(const std::vector<char>& exact) const = 0;
};

/// Of a path of CaseKind::sum: the nodes of both tokens' trees.
[[nodiscard]] Result<std::unique_ptr<RoundingModel>> sum_roundings(const FlipCase& flip_case,
                                                                   std::size_t path);

/// Of a path of CaseKind::attention: the steps of the kernel in each block, of P·V also each
/// instruction of a matrix unit.
[[nodiscard]] Result<std::unique_ptr<RoundingModel>> attention_roundings(const FlipScorer& scorer,
                                                                         const FlipCase& flip_case,
                                                                         std::size_t path);

}  // namespace kvsim::fuzz
