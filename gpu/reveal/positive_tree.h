// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/reveal/tree_probe.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// A question about a sum whose terms are all positive, where no mask can be taken away again: one
/// term is large, two are a little less than half a unit in the last place of it, and the others
/// hardly anything. Alone each of the two is lost in the large one; together they are not.
struct AbsorptionProbe {
  std::int32_t first = -1;
  std::int32_t second = -1;
  std::int32_t large = -1;
};

/// Answers such questions in their order: do the two meet before they meet the large term?
using AbsorptionAnswers =
    std::function<Result<std::vector<bool>>(const std::vector<AbsorptionProbe>& probes)>;

/// The tree of additions of `terms` terms from the answers. Each round takes two random terms of
/// every subtree that is still unknown and asks of each other term where it meets them: outside
/// both, or together with one. With the tree in hand one more question for each of its nodes checks
/// it. `calls` of the result is 0. Errors (cannot_tell): answers that no tree of additions of two
/// operands gives, said of `what`; and those of `ask`. `seed` decides which terms are compared.
[[nodiscard]] Result<ProbedTree> absorption_tree(std::int64_t terms, const AbsorptionAnswers& ask,
                                                 const std::string& what, std::uint64_t seed = 1);

}  // namespace kvsim::gpu
