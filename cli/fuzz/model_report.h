// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "cli/fuzz/request.h"
#include "cli/output.h"
#include "cli/run/token_text.h"
#include "fuzz/flip/model_score.h"
#include "fuzz/flip/model_search.h"
#include "fuzz/flip/model_shrink.h"

namespace kvsim {

/// What a search with a model was asked for and left.
struct ModelFlipSetting {
  SearchLimits limits;
  std::string prompts;  ///< for people
  std::string file;     ///< of the case; may be empty
};

/// What `kvsim fuzz flip --model` answers.
[[nodiscard]] Report model_flip_report(const ModelFlipSetting& setting,
                                       const fuzz::ModelScorer& scorer,
                                       const fuzz::ModelSearch& search, const TokenText& text);

/// What `kvsim fuzz replay` answers of a case of a model.
[[nodiscard]] Report model_replay_report(const std::string& file, const fuzz::ModelScorer& scorer,
                                         const fuzz::ModelFlip& flip, const TokenText& text);

/// What `kvsim fuzz shrink` answers of it; `out` is the file that was written, or empty.
[[nodiscard]] Report model_shrink_report(const std::string& file, const std::string& out,
                                         const fuzz::ModelScorer& scorer,
                                         const fuzz::ShrunkModelCase& shrunk,
                                         const TokenText& text);

}  // namespace kvsim
