// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <string>

#include "cli/kernels/entry.h"
#include "sim/attention/kernel.h"
#include "sim/devices.h"
#include "sim/dispatch.h"
#include "sim/exp_models.h"
#include "sim/units/matrix_unit.h"

namespace kvsim {

std::vector<KernelEntry> exp_entries() {
  std::vector<KernelEntry> entries;
  for (const ExpModelRow& row : exp_models()) {
    KernelParameters parameters{{"base", row.base == ExpBase::two ? "2" : "e"},
                                {"bounded", yes_or_no(row.bounded)}};
    entries.push_back({std::string(row.name),
                       {},
                       devices::any.device_class,
                       row.source,
                       row.date,
                       row.evidence,
                       row.note,
                       std::move(parameters)});
  }
  return entries;
}

std::vector<KernelEntry> dispatch_entries() {
  std::vector<KernelEntry> entries;
  for (const Dispatch& row : dispatches()) {
    KernelParameters parameters{{"what", std::string(row.description)}};
    for (const DispatchLine& line : dispatch_lines(row)) {
      parameters.emplace_back(line.operation, line.kernel);
    }
    // A dispatch is for the device of its attention kernel; controls have none.
    const AttentionKernel* attention = find_attention_kernel(row.attention_decode);
    const std::string_view device =
        attention == nullptr ? devices::any.device_class : attention->device;
    entries.push_back({std::string(row.name),
                       {},
                       device,
                       row.source,
                       {},
                       row.evidence,
                       {},
                       std::move(parameters)});
  }
  return entries;
}

std::vector<KernelEntry> unit_entries() {
  std::vector<KernelEntry> entries;
  for (const MatrixUnit& row : matrix_units()) {
    KernelParameters parameters{{"operation", std::string(to_string(row.operation))},
                                {"instruction", std::string(row.instruction)}};
    entries.push_back({std::string(row.name),
                       {},
                       devices::class_of(row.name.substr(0, row.name.find('.'))),
                       row.source,
                       {},
                       row.evidence,
                       row.note,
                       std::move(parameters)});
  }
  return entries;
}

}  // namespace kvsim
