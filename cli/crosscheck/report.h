// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <vector>

#include "cli/crosscheck/request.h"
#include "cli/output.h"
#include "gpu/crosscheck/crosscheck.h"
#include "gpu/crosscheck/decoder_check.h"
#include "softfloat/result.h"

namespace kvsim {

/// What came of one case: an outcome, or why there is none.
using CrosscheckResult = Result<gpu::CheckOutcome>;

/// Case by case, in their order.
[[nodiscard]] Report crosscheck_report(const CrosscheckRequest& request,
                                       const std::vector<CrosscheckResult>& results);

/// Operator by operator, over all layers and passes.
[[nodiscard]] Report end_to_end_report(const EndToEndRequest& request,
                                       const gpu::DecoderCheckOutcome& outcome);

}  // namespace kvsim
