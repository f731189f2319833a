// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sim/engine/columns.h"
#include "softfloat/evidence.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// Element-wise sums and products of two tensors: the residual stream, and the gate of a gated
/// feed-forward block. Computed in binary32, then rounded to storage.
namespace kvsim {

/// One row: how the residual stream is kept.
struct ResidualKernel {
  std::string_view name = {};                    ///< "storage-residual"
  std::string_view device = {};                  ///< device class: "CPU", "GPU", "any"
  std::optional<softfloat::Format> stream = {};  ///< format of the sum; none: that of storage
  std::string_view source = {};                  ///< repository and file, or document
  std::string_view date = {};                    ///< of the source: a version, a month or a year
  softfloat::Evidence evidence = softfloat::Evidence::assumed;
  std::string_view note = {};  ///< what is assumed; may be empty
};

/// Every kernel, in the order in which they are listed to the user.
[[nodiscard]] std::span<const ResidualKernel> residual_kernels();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const ResidualKernel* find_residual_kernel(std::string_view name);

/// out[i] = x[i] + y[i], rounded to the kernel's stream format or to `storage`; `out` may be
/// either. An error where the lengths differ or a format has numbers that are not floats.
Result<bool> add_residual(const ResidualKernel& kernel, const softfloat::Format& storage,
                          std::span<const float> x, std::span<const float> y, std::span<float> out,
                          const EngineOptions& options = {});

/// out[i] = x[i] × y[i], rounded to `storage`; `out` may be either. Errors as above.
Result<bool> multiply_elements(const softfloat::Format& storage, std::span<const float> x,
                               std::span<const float> y, std::span<float> out,
                               const EngineOptions& options = {});

}  // namespace kvsim
