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
      ControlRow{
          2, "identity", "equal bits with and without the cache in kernels that promise it",
          "a difference: mask, positions, an offset",
          "both arms with batch-invariant kernels, bit for bit; where there are none, a cache that "
          "is kept against one that every step builds anew in equal passes",
          2, measure_identity, judge_identity},
      ControlRow{3, "KL after the same tokens", "small at every step: two rounding errors apart",
                 "0.1 nats and more",
                 "mean KL of the arms, at most 3.1 (KL + KL) that predict expects of them", 3,
                 measure_forced, judge_forced},
      ControlRow{4, "two unrelated texts", "far more than after the same tokens",
                 "as much as after the same tokens",
                 "mean KL of unrelated texts, at least what control 3 allows and its largest KL", 2,
                 measure_plateau, judge_plateau},
      ControlRow{
          5, "formats", "the error grows with the unit roundoff u, KL with its square",
          "neither follows u",
          "the power of u between the coarsest and the finest format, within what predict says of "
          "both",
          18, measure_storage, judge_storage},
      ControlRow{6, "order of sums alone", "the difference grows with u of the accumulator",
                 "it is the same in every accumulator",
                 "the power of u between sums in binary16 and in binary32, within what predict "
                 "says of both",
                 12, measure_order, judge_order},
      ControlRow{7, "exact sums", "no effect of the order is left, the error of storage is",
                 "a difference stays", "both arms with exact sums, bit for bit", 4,
                 measure_exact_sums, judge_exact_sums},
      ControlRow{8, "cache built otherwise", "equal bits where kernels promise it",
                 "a difference stays",
                 "the cache rebuilt in equal passes, and in other passes with batch-invariant "
                 "kernels, bit for bit",
                 10, measure_constructors, judge_constructors},
      ControlRow{9, "cache of another text", "what follows is the donor's, bit for bit",
                 "no effect, or the own cache put back changes bits",
                 "the next logits and tokens with all keys and values of another text, both ways",
                 2, measure_transplant, judge_transplant},
      ControlRow{10, "noise in the cache", "it moves logits as far as the other arm's cache does",
                 "it moves them less",
                 "root mean square change of the next logits, within the step between two 16-bit "
                 "formats",
                 4, measure_noise, judge_noise},
      ControlRow{
          11, "flips by margin", "none at margins that rounding does not reach",
          "flips at large margins",
          "pairs of the 16 largest logits that change places along random tokens: the largest "
          "margin, over the deviation that predict expects and over twice the largest change",
          6, measure_flips, judge_flips},
      ControlRow{12, "defects on purpose", "each is farther apart than rounding explains",
                 "a defect looks like the measured difference",
                 "mean KL of each defect, above what control 3 allows", 18, measure_defects,
                 judge_defects},
      ControlRow{13, "sampling", "other tokens only where a boundary crosses the drawn number",
                 "other tokens from the first step",
                 "draws of the same number that choose other tokens though no boundary crossed it",
                 6, measure_sampling, judge_sampling},
      ControlRow{14, "shared K/V heads", "the bits of a K/V head for each query head",
                 "sharing changes the bits",
                 "the attention kernel on shared and on repeated heads, not split, bit for bit", 1,
                 measure_heads, judge_heads},
      ControlRow{
          15, "drift of the first layer", "a few units of the format",
          "large already in the first layer",
          "relative L2 of layer 0 at decode steps, at most 1.8 times what predict expects of both",
          3, measure_drift, judge_drift},
      ControlRow{16, "TF32 and kinds of attention", "cells of their own, each as large as its u",
                 "results in float32 hang on TF32",
                 "error of each kind of attention, at most twice what predict expects; error of "
                 "TF32 and of "
                 "float32 by the power of u",
                 15, measure_cells, judge_cells},
  };
  return rows;
}

}  // namespace kvsim::experiments
