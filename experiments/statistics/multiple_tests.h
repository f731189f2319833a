// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <vector>

#include "softfloat/result.h"

/// p-values of many tests at once. An adjusted p-value is the smallest level at which that test is
/// still rejected; results stand in the order of the input.
namespace kvsim::statistics {

/// Bonferroni: min(1, m · p) holds the probability of any false rejection below the level.
/// Source: Dunn, "Multiple comparisons among means", JASA 56(293), 1961. Errors (usage): a p-value
/// outside [0, 1].
[[nodiscard]] Result<std::vector<double>> bonferroni(std::span<const double> p_values);

/// Benjamini–Hochberg: min over j ≥ i of m ÷ j · p₍ⱼ₎ holds the expected share of false rejections
/// among all rejections below the level, for independent or positively dependent tests. Source:
/// Benjamini, Hochberg, "Controlling the false discovery rate: a practical and powerful approach to
/// multiple testing", JRSS B 57(1), 1995. Errors (usage): a p-value outside [0, 1].
[[nodiscard]] Result<std::vector<double>> benjamini_hochberg(std::span<const double> p_values);

}  // namespace kvsim::statistics
