// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/saved_kernel.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "cli/reveal/attention_parts.h"
#include "cli/reveal/report.h"
#include "gpu/backend.h"
#include "gpu/reveal/addition_tree.h"
#include "sim/order.h"

namespace kvsim {
namespace {

/// What every row says: its name, and where and when it was revealed.
template <class Request>
OwnKernel row_of(const Request& request, const std::string& date) {
  const gpu::Fingerprint fingerprint = request.backend->fingerprint();
  OwnKernel kernel;
  kernel.name = request.save.value_or("");
  kernel.backend = request.backend->name();
  kernel.date = date;
  kernel.key = fingerprint.key();
  for (const std::string_view what :
       {gpu::fingerprint_names::device, gpu::fingerprint_names::cpu_model,
        gpu::fingerprint_names::cpu_vendor}) {
    if (kernel.device.empty()) kernel.device = fingerprint.value(what);
  }
  if (kernel.device.empty()) kernel.device = "any";
  kernel.fingerprint = fingerprint.entries;
  return kernel;
}

}  // namespace

OwnKernel own_kernel(const RevealRequest& request, const gpu::Revelation& found,
                     const std::string& date) {
  const gpu::RevealedSums& main = found.classes.front();
  OwnKernel kernel = row_of(request, date);
  kernel.operation = request.shape.operation;
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
  return kernel;
}

OwnKernel own_kernel(const AttentionRevealRequest& request, const gpu::AttentionRevelation& found,
                     const std::string& date) {
  OwnKernel kernel = row_of(request, date);
  kernel.operation = attention_operation;
  kernel.storage = request.layer.format;
  kernel.output = found.output;
  OwnAttention layer{.kernel = {},
                     .shape = request.layer.shape,
                     .attributes = request.layer.attributes,
                     .walk = walk_text(found)};
  for (const gpu::KernelAgreement& one : found.replay.kernels) {
    if (one.compared == 0 || one.different > 0) continue;
    layer.kernel = one.kernel;
    kernel.outputs_checked = one.compared;
    break;
  }
  kernel.attention = std::move(layer);
  if (const auto& tree = found.classes.front().tree) kernel.tree_sha256 = gpu::digest(*tree);
  return kernel;
}

void add_saved(Report& report, const std::string& name, const std::string& path) {
  report.tables.front().rows.push_back(
      {Cell("saved"), Cell(fmt::format("{} in {}", name, printable(path, 400)))});
  report.result["saved"] = {{"name", name}, {"file", path}};
}

}  // namespace kvsim
