// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <span>
#include <vector>

#include "sim/sum_tree.h"

namespace kvsim {

/// The values of all nodes on the way to the sum of evaluate_tree(), as host numbers: in the
/// accumulator format, of nodes of the matrix unit in the unit's; a term of Product::exact as its
/// product. For formats of at most binary32. Errors as there.
Result<std::vector<double>> evaluate_nodes(const SumTree& tree, Product product,
                                           const softfloat::Format& input,
                                           const softfloat::Format& accumulator,
                                           std::span<const softfloat::Bits> a,
                                           std::span<const softfloat::Bits> b);

/// The format of a node's value: the unit's for nodes of the matrix unit, else the accumulator's.
softfloat::Format format_of_node(const SumTree& tree, const SumNode& node,
                                 const softfloat::Format& accumulator);

}  // namespace kvsim
