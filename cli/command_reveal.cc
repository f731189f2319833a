// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/reveal/report.h"
#include "cli/reveal/request.h"
#include "cli/sink.h"
#include "gpu/reveal/addition_tree.h"

namespace kvsim {
namespace {

Result<gpu::Revelation> reveal_shape(RevealRequest& request, const gpu::ReductionShape& shape) {
  auto reduction = gpu::make_reduction(*request.backend, shape);
  if (!reduction) return reduction.error();
  return gpu::reveal(**reduction, request.options);
}

Result<Answer> run_sweep(RevealRequest& request) {
  const auto sizes = gpu::sweep(*request.backend, request.shape, request.sweep->size,
                                request.sweep->first, request.sweep->last, 64,
                                request.options.seed);
  if (!sizes) return sizes.error();
  std::vector<RevealedSizes> classes;
  for (const gpu::SizeClass& one : *sizes) {
    gpu::ReductionShape shape = request.shape;
    (request.sweep->size == gpu::SweptSize::rows ? shape.rows : shape.columns) = one.first;
    auto found = reveal_shape(request, shape);
    if (!found) return found.error();
    classes.push_back({one, std::move(*found)});
  }
  Answer answer;
  answer.report = sweep_report(request, classes);
  for (const RevealedSizes& one : classes) {
    if (one.found.explained() || answer.exit_code != ExitCode::done) continue;
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = unexplained_text(one.found);
  }
  return answer;
}

Result<Answer> run_reveal(const ParsedOptions& options) {
  auto request = reveal_request(options);
  if (!request) return request.error();
  if (request->sweep) return run_sweep(*request);
  const auto found = reveal_shape(*request, request->shape);
  if (!found) return found.error();
  const auto dependences = gpu::find_dependences(*request->backend, request->shape,
                                                 request->threads, request->options.seed);
  if (!dependences) return dependences.error();
  if (request->svg && found->classes.front().tree) {
    const auto written =
        write_output_file(*request->svg, gpu::to_svg(*found->classes.front().tree));
    if (!written) return written.error();
  }
  Answer answer;
  answer.report = reveal_report(*request, *found, *dependences);
  if (!found->explained()) {
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = unexplained_text(*found);
  }
  return answer;
}

}  // namespace

const Command reveal_command{
    .name = "reveal",
    .summary = "how a real back end adds: its order of summation, checked by replay to the bit",
    .synopsis = "--backend NAME --k K [OPTIONS]",
    .description =
        "Runs one operator of a back end on probes: sums in which two large terms hide what is\n"
        "added before they meet. They give the tree of additions; single terms give what the tree\n"
        "does not tell (products fused or rounded, precision and rounding of sums). The result is\n"
        "an order in the grammar that every other command takes, and it is printed only after its\n"
        "replay has given every bit of many outputs of which nothing is left but rounding.\n"
        "\n"
        "Rows and columns that add otherwise (edges of tiles, addresses) are found first and\n"
        "revealed apart. --sweep groups sizes by the bits that they give: why row i changes with\n"
        "the batch. Exit 4: no order gives what was seen; the smallest difference is printed.",
    .options = reveal_options,
    .examples =
        "  kvsim reveal --backend openblas --op dot --k 1000\n"
        "  kvsim reveal --backend torch-cpu --m 1 --k 4096 --n 4096 --dtype bf16",
    .run = run_reveal,
};

}  // namespace kvsim
