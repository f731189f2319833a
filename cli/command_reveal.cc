// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/kernels/own_kernels.h"
#include "cli/reveal/attention_report.h"
#include "cli/reveal/attention_request.h"
#include "cli/reveal/positive_report.h"
#include "cli/reveal/report.h"
#include "cli/reveal/request.h"
#include "cli/reveal/saved_kernel.h"
#include "cli/sink.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/attention/attention_dependence.h"
#include "gpu/reveal/attention/attention_sweep.h"
#include "gpu/reveal/attention/reveal_attention.h"
#include "gpu/reveal/positive_operator.h"
#include "gpu/reveal/same_row.h"
#include "gpu/reveal/term_classes.h"

namespace kvsim {
namespace {

constexpr std::array reveal_options{
    OptionSpec{
        "--backend", "NAME",
        "what to look at: torch-cpu, openblas, blis, sim, sim:KERNEL, plugin:FILE (required)"},
    OptionSpec{"--op", "NAME",
               "linear (default), matmul, gemm, bmm, gemv, dot, sum, mean, sdpa, softmax, "
               "log-softmax, rms-norm"},
    OptionSpec{"--m", "M", "rows of x (default 1)"},
    OptionSpec{"--n", "N",
               "outputs; rows of the matrix of gemv, of sum, mean, softmax and norm (default 1)"},
    OptionSpec{"--k", "K", "terms of a sum (required but for sdpa)"},
    OptionSpec{"--batch", "B", "matrices of bmm (default 1)"},
    OptionSpec{"--heads", "H", "query heads of sdpa (default 1)"},
    OptionSpec{"--kv-heads", "H", "key/value heads of sdpa (default as many as --heads)"},
    OptionSpec{"--head-dim", "D", "head dimension of sdpa (required for it)"},
    OptionSpec{"--kv-len", "L", "keys of sdpa (required for it)"},
    OptionSpec{"--q-len", "Q", "queries of sdpa (default 1)"},
    OptionSpec{"--dtype", "FORMAT", "format of the inputs (default fp32)"},
    OptionSpec{
        "--setting", "NAME",
        "environment of libtorch: installed (default) or pinned, the same on every AVX2 CPU"},
    OptionSpec{"--threads", "N", "threads of the back end (default 1)"},
    OptionSpec{"--misaligned", "BYTES", "weights begin that far off a multiple of 64 (default 0)"},
    OptionSpec{"--attribute", "KEY=VALUE", "an attribute of the operator, such as order=pairwise",
               true},
    OptionSpec{"--outputs", "N", "results to compare with a replay, at least (default 10000)"},
    OptionSpec{"--most-calls", "N",
               "calls that a minor class of columns may take to be probed (default 4096)"},
    OptionSpec{"--seed", "S", "which terms are compared and which data checked (default 1)"},
    OptionSpec{
        "--sweep", "m=A..B",
        "group the sizes m or n from A to B by the bits they give, k by the order; of sdpa m "
        "(queries) and kv-len"},
    OptionSpec{"--same-row", "LIST",
               "one and the same row at these M: which outputs change, and their replay"},
    OptionSpec{"--save", "NAME",
               "keep the order as a kernel of yours, for kvsim kernels and replay"},
    OptionSpec{"--svg", "FILE", "draw the tree of the largest class into FILE"},
};

Result<gpu::Revelation> reveal_shape(RevealRequest& request, const gpu::ReductionShape& shape) {
  auto reduction = gpu::make_reduction(*request.backend, shape);
  if (!reduction) return reduction.error();
  return gpu::reveal(**reduction, request.options);
}

Result<std::vector<RevealedSizes>> classes_of_sizes(RevealRequest& request,
                                                    const SweepRequest& swept) {
  const bool rows = swept.name == "m";
  const auto sizes = gpu::sweep(*request.backend, request.shape,
                                rows ? gpu::SweptSize::rows : gpu::SweptSize::columns, swept.first,
                                swept.last, 64, request.options.seed);
  if (!sizes) return sizes.error();
  std::vector<RevealedSizes> classes;
  classes.reserve(sizes->size());
  for (const gpu::SizeClass& one : *sizes) {
    gpu::ReductionShape shape = request.shape;
    (rows ? shape.rows : shape.columns) = one.first;
    auto found = reveal_shape(request, shape);
    if (!found) return found.error();
    classes.push_back({one, std::move(*found)});
  }
  return classes;
}

Result<std::vector<RevealedSizes>> classes_of_terms(RevealRequest& request,
                                                    const SweepRequest& swept) {
  auto found = gpu::sweep_terms(*request.backend, request.shape, request.options,
                                {.first = swept.first, .last = swept.last});
  if (!found) return found.error();
  std::vector<RevealedSizes> classes;
  classes.reserve(found->size());
  for (gpu::TermClass& one : *found) classes.push_back({one.terms, std::move(one.found)});
  return classes;
}

Result<Answer> run_sweep(RevealRequest& request, const SweepRequest& swept) {
  const auto classes =
      swept.name == "k" ? classes_of_terms(request, swept) : classes_of_sizes(request, swept);
  if (!classes) return classes.error();
  Answer answer;
  answer.report = sweep_report(request, swept, *classes);
  for (const RevealedSizes& one : *classes) {
    if (one.found.explained() || answer.exit_code != ExitCode::done) continue;
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = unexplained_text(one.found);
  }
  return answer;
}

/// Adds a row to the user's kernel file and says so.
Result<bool> keep(const OwnKernel& kernel, Answer& answer) {
  const std::string path = own_kernels_path();
  const auto saved = add_own_kernel(path, kernel);
  if (saved) add_saved(answer.report, kernel.name, path);
  return saved;
}

/// Keeps what was found as a kernel of the user's, where the grammar has words for it.
Result<bool> save(const RevealRequest& request, const gpu::Revelation& found, Answer& answer) {
  const auto& model = found.classes.front().model;
  if (!model || !model->order) {
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = "--save: the grammar of orders has no words for this tree; nothing is saved";
    return false;
  }
  return keep(own_kernel(request, found, today()), answer);
}

/// The report of what was found, its drawing in a file where one is asked for.
template <class Found>
Result<Answer> answer_of(const Found& found, Report report, const std::optional<std::string>& svg) {
  if (const auto& tree = found.classes.front().tree; svg && tree) {
    const auto written = write_output_file(*svg, gpu::to_svg(*tree));
    if (!written) return written.error();
  }
  Answer answer;
  answer.report = std::move(report);
  if (!found.explained()) {
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = unexplained_text(found);
  }
  return answer;
}

Result<Answer> run_attention_sweep(AttentionRevealRequest& request, const SweepRequest& swept) {
  const bool queries = swept.name == "m";
  // A size of queries takes three calls, one of keys a revelation.
  const auto classes =
      gpu::sweep_attention(*request.backend, request.layer, request.options,
                           queries ? gpu::AttentionSize::queries : gpu::AttentionSize::keys,
                           {.first = swept.first, .last = swept.last, .every = queries ? 64 : 32});
  if (!classes) return classes.error();
  Answer answer;
  answer.report = attention_sweep_report(request, swept, *classes);
  for (const gpu::AttentionSizes& one : *classes) {
    if (one.found.explained() || answer.exit_code != ExitCode::done) continue;
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = unexplained_text(one.found);
  }
  return answer;
}

Result<Answer> run_attention_reveal(const ParsedOptions& options) {
  auto request = attention_reveal_request(options);
  if (!request) return request.error();
  if (const auto& swept = request->sweep) return run_attention_sweep(*request, *swept);
  gpu::AttentionCalls calls(*request->backend, request->layer);
  const auto found = gpu::reveal_attention(calls, request->options);
  if (!found) return found.error();
  const auto dependences = gpu::attention_dependences(*request->backend, request->layer,
                                                      request->threads, request->options.seed);
  if (!dependences) return dependences.error();
  auto answer =
      answer_of(*found, attention_reveal_report(*request, *found, *dependences), request->svg);
  if (!answer) return answer.error();
  if (request->save && found->explained()) {
    const auto saved = keep(own_kernel(*request, *found, today()), *answer);
    if (!saved) return saved.error();
  }
  return answer;
}

Result<Answer> run_same_row(RevealRequest& request) {
  const auto rows =
      gpu::compare_row(*request.backend, request.shape, request.same_row, request.options);
  if (!rows) return rows.error();
  Answer answer;
  answer.report = same_row_report(request, *rows);
  for (const gpu::RowAmongOthers& row : *rows) {
    if (answer.exit_code != ExitCode::done) break;
    if (!row.found.explained()) {
      answer.exit_code = ExitCode::cannot_tell;
      answer.complaint = unexplained_text(row.found);
    } else if (row.unlike_replay > 0) {
      answer.exit_code = ExitCode::check_failed;
      answer.complaint = fmt::format("m = {}: {} of {} outputs are not those of the replay",
                                     row.rows, row.unlike_replay, row.compared);
    }
  }
  return answer;
}

Result<Answer> run_reveal(const ParsedOptions& options) {
  const auto attention = asks_for_attention(options);
  if (!attention) return attention.error();
  if (*attention) return run_attention_reveal(options);
  auto request = reveal_request(options);
  if (!request) return request.error();
  if (gpu::positive_kind(request->shape.operation)) return run_positive_reveal(*request);
  if (const auto& swept = request->sweep) return run_sweep(*request, *swept);
  if (!request->same_row.empty()) return run_same_row(*request);
  const auto found = reveal_shape(*request, request->shape);
  if (!found) return found.error();
  const auto dependences = gpu::find_dependences(*request->backend, request->shape,
                                                 request->threads, request->options.seed);
  if (!dependences) return dependences.error();
  auto answer = answer_of(*found, reveal_report(*request, *found, *dependences), request->svg);
  if (!answer) return answer.error();
  if (request->save && found->explained()) {
    const auto saved = save(*request, *found, *answer);
    if (!saved) return saved.error();
  }
  return answer;
}

}  // namespace

const Command reveal_command{
    .name = "reveal",
    .summary = "how a real back end adds: its order of summation, checked by replay to the bit",
    .synopsis = "--backend NAME (--k K | --op sdpa --kv-len L --head-dim D) [OPTIONS]",
    .description =
        "Runs one operator of a back end on probes: sums in which two large terms hide what is\n"
        "added before they meet. They give the tree of additions; single terms give what the tree\n"
        "does not tell (products fused or rounded, precision and rounding of sums). The result is\n"
        "an order in the grammar that every other command takes, and it is printed only after its\n"
        "replay has given every bit of many outputs of which nothing is left but rounding.\n"
        "\n"
        "Sums whose terms cannot be negative (softmax, norms) have no masks: there it shows which\n"
        "two terms of less than half an ulp meet before they meet a large one, in which each\n"
        "alone is lost.\n"
        "\n"
        "Rows and columns that add otherwise (edges of tiles, addresses) are found first and\n"
        "revealed apart. --sweep groups sizes by the bits that they give: why row i changes with\n"
        "the batch; --same-row shows it for one row. Exit 4: no order gives what was seen; the\n"
        "smallest difference is printed.\n"
        "\n"
        "sdpa: in which direction, in which blocks and splits the keys are taken, how splits are\n"
        "merged and when earlier sums are rescaled; the answer is the attention kernel of the "
        "table\n"
        "that gives every bit.",
    .options = reveal_options,
    .examples =
        "  kvsim reveal --backend openblas --op dot --k 1000\n"
        "  kvsim reveal --backend torch-cpu --m 1 --k 4096 --n 4096 --dtype bf16\n"
        "  kvsim reveal --backend torch-cpu --op sdpa --heads 32 --kv-heads 8 --head-dim 128 \\\n"
        "    --kv-len 1500 --dtype bf16",
    .run = run_reveal,
};

}  // namespace kvsim
