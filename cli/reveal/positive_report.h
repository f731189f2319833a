// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include "cli/command.h"
#include "cli/reveal/request.h"
#include "softfloat/result.h"

namespace kvsim {

/// `kvsim reveal` of an operator that adds up terms of one sign: softmax, log-softmax, rms-norm.
[[nodiscard]] Result<Answer> run_positive_reveal(RevealRequest& request);

}  // namespace kvsim
