// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/positive_model.h"
#include "gpu/reveal/positive_operator.h"
#include "gpu/reveal/reveal.h"
#include "sim/order.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// A difference between the back end and the replay, as small as it could be made: all elements of
/// the row but these are without weight in the sum (a score 69 below the largest; x = 0).
struct FailingRow {
  std::int64_t column = 0;            ///< where results differ
  std::vector<std::int64_t> columns;  ///< the elements
  std::vector<float> x;
  std::optional<double> epsilon;
  float seen = 0;
  float replayed = 0;
};

/// What was found out about the rows of a call that share one way to add.
struct RevealedRows {
  std::vector<std::int64_t> rows;
  std::optional<PositiveModel> model;  ///< the first that gives every bit; else the nearest
  bool explained = false;
  std::int64_t outputs_checked = 0;
  std::int64_t outputs_different = 0;
  std::int64_t rows_checked = 0;
  std::optional<FailingRow> failing;
};

/// What was found out about a softmax, log-softmax or RMS norm.
struct PositiveRevelation {
  AdditionTree tree;
  bool absorbs = true;                ///< false: sums keep more than 24 bits, and no tree shows
  std::vector<Order> orders;          ///< of the grammar with these additions, the simplest first
  std::vector<ExpChoice> exps;        ///< that give every e^t asked for; of a softmax
  std::vector<RevealedRows> classes;  ///< the largest first
  RevealCalls calls;                  ///< `arithmetic`: for exp; `tree`: with choosing elements

  [[nodiscard]] bool explained() const;
};

/// Finds out in which order an operator adds up terms that cannot be negative, where masks cannot
/// be taken away again: which of two terms of less than half an ulp meet before they meet a large
/// one (AbsorptionRows, absorption_tree). The order, the exp model of a softmax and how results are
/// made of the sum are then checked by a replay on the simulator's kernel, on random rows and on
/// rows of terms about half an ulp of the largest. Errors (cannot_tell): a call that does not
/// repeat, rows whose results do not tell it, probes that fit no tree; and those of the back end.
[[nodiscard]] Result<PositiveRevelation> reveal_positive(PositiveOperator& of,
                                                         const RevealOptions& options = {});

/// The same rows with two threads, alone in a call, and moved off a multiple of 64 bytes. The back
/// end's threads are set to `threads` afterwards.
[[nodiscard]] Result<std::vector<Dependence>> positive_dependences(Backend& backend,
                                                                   const ReductionShape& shape,
                                                                   std::int64_t threads,
                                                                   std::uint64_t seed = 1);

/// Numbers of elements whose rows are added in one order, and what was found of the smallest; its
/// order holds for all.
struct PositiveTermClass {
  SizeClass terms;
  PositiveRevelation found;
};

/// The numbers of elements from `first` to `last`, all of them, neighbours of one order together.
[[nodiscard]] Result<std::vector<PositiveTermClass>> sweep_positive(Backend& backend,
                                                                    ReductionShape shape,
                                                                    const RevealOptions& options,
                                                                    SizeClass terms);

}  // namespace kvsim::gpu
