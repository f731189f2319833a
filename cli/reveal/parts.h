// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/reveal/request.h"
#include "gpu/backend.h"
#include "gpu/reveal/dependence.h"
#include "gpu/reveal/reveal.h"

/// What the reports of `reveal` are put together from.
namespace kvsim {

/// "0–3, 8": runs of numbers, cut after a dozen.
[[nodiscard]] std::string runs_text(const std::vector<std::int64_t>& numbers);
/// In the grammar of orders, or what stands in its place: "the tree of ORDER" has its additions,
/// but not all of its bits.
[[nodiscard]] std::string order_text(const gpu::RevealedSums& sums);
/// "fused", "rounded", "exact", "of the unit", "mixed".
[[nodiscard]] std::string product_of(const gpu::RevealedSums& sums);
/// "10000 equal", "3 of 64 differ".
[[nodiscard]] std::string check_text(const gpu::RevealedSums& sums);
/// Operator, back end, sizes and format.
[[nodiscard]] std::string what_text(const RevealRequest& request);

/// Order, products and formats of a model.
[[nodiscard]] Json model_json(const gpu::RevealedSums& sums);
[[nodiscard]] Json calls_json(const gpu::RevealCalls& calls);
/// The entries of a back end's fingerprint.
[[nodiscard]] Json fingerprint_json(const gpu::Backend& backend);
/// What was asked for.
[[nodiscard]] Json input_json(const RevealRequest& request);

/// What else changes the bits, as a table and as JSON.
[[nodiscard]] Table dependences_table(const std::vector<gpu::Dependence>& dependences);
[[nodiscard]] Json dependences_json(const std::vector<gpu::Dependence>& dependences);

}  // namespace kvsim
