// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "experiments/controls/control.h"
#include "experiments/controls/measures.h"

namespace kvsim::experiments {

std::span<const ControlRow> control_rows() {
  static constexpr std::array rows{
      ControlRow{1, "replica", "the same bits twice", "noise from run to run",
                 "logits of every step and the cache of each arm, run twice, bit for bit", 4,
                 measure_replica, judge_replica},
      ControlRow{2, "identity", "equal bits with and without the cache in kernels that promise it",
                 "a difference: mask, positions, an offset",
                 "both arms with batch-invariant kernels, bit for bit", 2, measure_identity,
                 judge_identity},
      ControlRow{3, "KL after the same tokens", "small at every step: two rounding errors apart",
                 "0.1 nats and more",
                 "mean KL of the arms, at most 2 (KL + KL) of the arms from the widest arithmetic",
                 3, measure_forced, judge_forced},
      ControlRow{4, "two unrelated texts", "far more than after the same tokens",
                 "as much as after the same tokens",
                 "mean KL of unrelated texts, at least the largest KL of control 3", 2,
                 measure_plateau, judge_plateau},
      ControlRow{7, "exact sums", "no effect of the order is left, the error of storage is",
                 "a difference stays", "both arms with exact sums, bit for bit", 4,
                 measure_exact_sums, judge_exact_sums},
      ControlRow{8, "cache built otherwise", "equal bits where kernels promise it",
                 "a difference stays",
                 "the cache rebuilt in equal passes, and in other passes with batch-invariant "
                 "kernels, bit for bit",
                 10, measure_constructors, judge_constructors},
      ControlRow{15, "drift of the first layer", "a few units of the format",
                 "large already in the first layer",
                 "relative L2 of layer 0 at decode steps, at most what rounding of each arm "
                 "explains",
                 3, measure_drift, judge_drift},
  };
  return rows;
}

}  // namespace kvsim::experiments
