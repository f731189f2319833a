// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <string>

#include "experiments/study.h"
#include "experiments/study_file.h"

/// The controls of a model on an engine as a study: what must hold before anything else is said.
namespace kvsim::experiments {

/// The row of the study "controls". It stands in no list of studies: it runs before them.
[[nodiscard]] const StudyRow& controls_row();

/// The setup of the controls of a study: its engine and its arms on the first tokens of its first
/// prompts, with texts of a few tokens. Studies with equal arms share the controls.
[[nodiscard]] StudySetup controls_setup(const StudySetup& setup);

/// Where the records of the controls of that setup lie: FOLDER/controls-HASH.jsonl, HASH the first
/// 16 digits of the SHA-256 of their head line and of the dispatch of both arms: all that decides
/// their bytes. Errors of Study::units() and prepare().
[[nodiscard]] Result<std::string> controls_path(const StudySetup& setup, const std::string& folder);

}  // namespace kvsim::experiments
