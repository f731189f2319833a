// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>

#include "sim/predict/difference.h"
#include "sim/predict/kernel_choice.h"
#include "softfloat/result.h"

/// Keys and values projected one row at a time against all rows together: part 2 of predict.
namespace kvsim {

struct ProjectionOptions {
  KernelChoice kernels;
  softfloat::Format storage;
  std::int64_t hidden = 1;       ///< terms of each sum
  std::int64_t kv_width = 1;     ///< outputs: kv_heads · head_dim
  std::int64_t launch_rows = 1;  ///< rows of the launch with all of them
  std::int64_t rows = 1;         ///< of these, the first that are computed
  std::uint64_t seed = 1;
  EngineOptions engine;
};

/// What part of a K/V cache differs before anything else has happened.
struct ProjectionDifference {
  std::int64_t rows = 0;
  std::int64_t launch_rows = 0;
  std::string one_row_rule;   ///< kernel and order of one row alone
  std::string all_rows_rule;  ///< and of all rows together
  VectorDifference k;         ///< one row at a time against all together
  VectorDifference v;
};

/// Projects seeded rows, as they come out of a norm, to keys and to values, in both ways. Errors as
/// apply_linear().
[[nodiscard]] Result<ProjectionDifference> compare_projections(const ProjectionOptions& options);

}  // namespace kvsim
