// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/kernels/entry.h"
#include "cli/kernels/own_kernels.h"
#include "cli/output.h"
#include "softfloat/result.h"

namespace kvsim {

/// What `kvsim kernels` was asked for.
struct KernelFilter {
  std::optional<std::string> name;  ///< exactly
  std::optional<std::string>
      operator_name;                  ///< one of kernel_operators(), or of the user's operations
  std::optional<std::string> device;  ///< part of a device class, in any case of letters
};

/// The kernels that fit, listed, or told whole where a name is given (a name may stand in several
/// tables). Errors (usage): an unknown operator, device or name, with the near one.
/// `own` are the user's kernels, which stand behind the others.
[[nodiscard]] Result<Report> kernels_report(const KernelFilter& filter,
                                            std::span<const OwnKernel> own = {});

}  // namespace kvsim
