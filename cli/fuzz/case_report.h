// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/objective.h"
#include "fuzz/flip/score.h"

/// What the answers of `kvsim fuzz` say of a case.
namespace kvsim {

/// Six significant digits, and three.
[[nodiscard]] std::string number(double value);
[[nodiscard]] std::string ratio(double value);

/// Kind, sizes and both paths as fields.
[[nodiscard]] Json shape_json(const fuzz::CaseShape& shape, const fuzz::FlipScorer& scorer);

/// What a path is called: "on" and "off", of attention "cache-on" and "cache-off".
[[nodiscard]] std::string_view path_label(const fuzz::CaseShape& shape, std::size_t path);

/// "cache-on chooses token 0, cache-off token 1"
[[nodiscard]] std::string choice_text(const fuzz::CaseShape& shape,
                                      const std::array<int, 2>& tokens);

/// The sentence of a target's table (fuzz/flip/objective.h), filled in.
[[nodiscard]] std::string claim_text(std::string_view text, const fuzz::CaseShape& shape,
                                     const fuzz::FlipScore& score,
                                     const fuzz::Confirmation& confirmation,
                                     const fuzz::Claim& claim);

/// Sizes, storage format and both paths.
[[nodiscard]] Table settings_table(const fuzz::CaseShape& shape, const fuzz::FlipScorer& scorer);

/// Both paths beside the exact result.
[[nodiscard]] Table paths_table(const fuzz::CaseShape& shape, const fuzz::FlipScore& score);

/// Fields margin, apart, bound and bound_ratio.
void add_score(Json& result, const fuzz::FlipScore& score, const fuzz::Confirmation& confirmation);

}  // namespace kvsim
