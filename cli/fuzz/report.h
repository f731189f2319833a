// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <string>

#include "cli/fuzz/follow_up.h"
#include "cli/fuzz/request.h"
#include "cli/output.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/objective.h"
#include "fuzz/flip/score.h"
#include "fuzz/flip/search.h"

namespace kvsim {

/// What `kvsim fuzz flip` answers.
[[nodiscard]] Report flip_report(const FlipRequest& request, const fuzz::FlipScorer& scorer,
                                 const fuzz::FlipSearch& search,
                                 const std::optional<fuzz::FlipSearch::Confirmed>& found,
                                 const FlipFollowUp& after);

/// What `kvsim fuzz replay` answers; `claim`: the confirmed one of the case's target.
[[nodiscard]] Report replay_report(const std::string& file, const fuzz::FlipScorer& scorer,
                                   const fuzz::FlipScore& score,
                                   const fuzz::Confirmation& confirmation,
                                   const fuzz::Claim& claim);

}  // namespace kvsim
