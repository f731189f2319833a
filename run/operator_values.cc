// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/operator_values.h"

#include <cstddef>
#include <span>
#include <string>

#include "run/record.h"

namespace kvsim {

void add_operator_values(const OperatorOutput& output, std::int64_t drafts, std::int64_t position,
                         const PassRequest& request, EnginePass& result) {
  if (output.operation == "logits") return;
  const bool is_hidden = output.operation == "hidden";
  if (!is_hidden && !request.operator_values) return;
  const std::span<const double> row =
      output.values.subspan(static_cast<std::size_t>((output.rows - drafts - 1) * output.width),
                            static_cast<std::size_t>(output.width));
  if (is_hidden && request.layer_digests) result.digests.layer.push_back(digest_of(row));
  if (!request.operator_values && !request.layer_values) return;
  result.values.push_back(
      {output.layer, std::string(output.operation), 0, position, {row.begin(), row.end()}});
}

}  // namespace kvsim
