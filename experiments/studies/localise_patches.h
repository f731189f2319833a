// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/protocol/transplant.h"
#include "run/engine.h"

namespace kvsim::experiments {

/// A patch of the study `localise`.
struct NamedPatch {
  std::string group;  ///< "check", "part", "layer", "layers", "position", "hidden" or "hiddens"
  std::string name;   ///< "K", "layer 3": once in its group
  StatePatch patch;
  bool is_own = false;     ///< the recipient's own state is put back
  bool continues = false;  ///< the text behind it is followed, too
};

/// What is taken from the other cache at a fork of `cached_rows` rows, of which `prompt_rows` are
/// the prompt's: two checks; K, V and both, halves of the layers, single heads of all layers;
/// single layers and the first l of them; positions; hidden states behind single layers and behind
/// all. (Within one pass a hidden state behind layer l and all those up to it give the same
/// logits.)
[[nodiscard]] std::vector<NamedPatch> fork_patches(const StateShape& shape,
                                                   std::int64_t prompt_rows,
                                                   std::int64_t cached_rows);

/// Hidden states that are replaced at the first decode step: all of them by their own; then single
/// layers and the first l of them, for at most eight layers, evenly spaced, with the last.
[[nodiscard]] std::vector<NamedPatch> first_step_patches(std::int64_t layers);

}  // namespace kvsim::experiments
