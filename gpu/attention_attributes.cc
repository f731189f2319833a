// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/attention_attributes.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "gpu/operators.h"

namespace kvsim::gpu {

Result<bool> set_attention_attributes(const std::map<std::string, std::string>& attributes,
                                      AttentionProblem& problem) {
  const OperatorCall call{.operation = "sdpa", .attributes = attributes};
  const auto causal = flag_attribute(call, "causal", false);
  if (!causal) return causal.error();
  const auto scale = number_attribute(call, "scale", 0);
  if (!scale) return scale.error();
  problem.mask.causal = *causal;
  problem.scale = static_cast<float>(*scale);
  for (const auto& [name, field] : {std::pair{"splits", &problem.launch.splits},
                                    std::pair{"split-size", &problem.launch.split_size}}) {
    const auto number = number_attribute(call, name, 0);
    if (!number) return number.error();
    if (!(*number >= 0 && *number <= 1 << 20)) {
      return Error{ErrorKind::usage,
                   fmt::format("sdpa: attribute {}={} is not 0 … 2^20", name, *number)};
    }
    *field = static_cast<std::int64_t>(*number);
  }
  return true;
}

}  // namespace kvsim::gpu
