// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/saved_kernel.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/printable.h"
#include "cli/reveal/report.h"
#include "gpu/backend.h"
#include "gpu/reveal/addition_tree.h"
#include "sim/order.h"

namespace kvsim {

OwnKernel own_kernel(const RevealRequest& request, const gpu::Revelation& found,
                     const std::string& date) {
  const gpu::RevealedSums& main = found.classes.front();
  const gpu::Fingerprint fingerprint = request.backend->fingerprint();
  OwnKernel kernel;
  kernel.name = request.save.value_or("");
  kernel.operation = request.shape.operation;
  kernel.backend = request.backend->name();
  kernel.date = date;
  kernel.key = fingerprint.key();
  for (const std::string_view what :
       {gpu::fingerprint_names::device, gpu::fingerprint_names::cpu_model,
        gpu::fingerprint_names::cpu_vendor}) {
    if (kernel.device.empty()) kernel.device = fingerprint.value(what);
  }
  if (kernel.device.empty()) kernel.device = "any";
  kernel.rows = request.shape.rows;
  kernel.outputs = request.shape.columns;
  kernel.terms = request.shape.terms;
  if (main.model) {
    kernel.order = main.model->order ? to_string(*main.model->order) : std::string();
    kernel.product = main.model->product;
    kernel.storage = main.model->input;
    kernel.accumulator = main.model->accumulator;
    kernel.output = main.model->output;
  }
  kernel.outputs_checked = main.outputs_checked;
  if (main.tree) kernel.tree_sha256 = gpu::digest(*main.tree);
  for (const gpu::RevealedSums& sums : found.classes) {
    if (&sums != &main) kernel.exceptions.push_back(exception_text(sums));
  }
  kernel.fingerprint = fingerprint.entries;
  return kernel;
}

void add_saved(Report& report, const std::string& name, const std::string& path) {
  report.tables.front().rows.push_back(
      {Cell("saved"), Cell(fmt::format("{} in {}", name, printable(path, 400)))});
  report.result["saved"] = {{"name", name}, {"file", path}};
}

}  // namespace kvsim
