// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/output.h"
#include "cli/run/run_request.h"
#include "run/run_results.h"

namespace kvsim {

/// The report of `kvsim run`.
[[nodiscard]] Report run_report(const RunRequest& request, const RunResults& results,
                                const RunSummary& summary);

/// The report of `kvsim run --explain`: what computes each operator of the first arm and of each
/// other one, in a pass over the first prompt and in one for a new token. Errors (usage).
[[nodiscard]] Result<Report> explain_report(const RunRequest& request);

/// What determines a run, as JSON.
[[nodiscard]] Json run_input_json(const RunRequest& request);

}  // namespace kvsim
