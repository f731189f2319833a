// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/crosscheck/report.h"
#include "cli/crosscheck/request.h"
#include "cli/progress.h"
#include "gpu/crosscheck/revealed.h"
#include "gpu/crosscheck/simulated.h"

namespace kvsim {
namespace {

Result<Answer> run_end_to_end(const ParsedOptions& options) {
  const auto request = end_to_end_request(options);
  if (!request) return request.error();
  const auto outcome =
      gpu::check_decoder(request->checkpoint, request->common.dispatch, request->options);
  if (!outcome) return outcome.error();
  Answer answer;
  answer.report = end_to_end_report(*request, *outcome);
  if (const auto& first = outcome->first; first) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = fmt::format("not equal to the bit: first in layer {}, {}, of pass {}",
                                   first->layer, first->operation, first->pass);
  }
  return answer;
}

CrosscheckResult run_case(gpu::Backend& backend, gpu::Simulation& simulation,
                          const CrosscheckCase& one, std::uint64_t seed, bool shrinks) {
  if (!one.inputs.empty()) {
    return compare_check(backend, simulation, one.check, one.inputs, {.shrinks = shrinks});
  }
  const gpu::CheckData data =
      one.data == "cancel" ? gpu::CheckData::cancel : gpu::CheckData::gaussian;
  const auto inputs = gpu::check_data(one.check, data, seed);
  if (!inputs) return inputs.error();
  return compare_check(backend, simulation, one.check, *inputs, {.shrinks = shrinks});
}

/// What kernels tell apart first of all: the operator, and one row or more.
std::string kind_of(const gpu::Check& check) {
  const bool single = check.is_attention() ? check.queries == 1 : check.rows == 1;
  return fmt::format("{} {}", check.operation, single ? "of one row" : "");
}

Result<Answer> run_crosscheck(const ParsedOptions& options) {
  if (options.has("--end-to-end")) return run_end_to_end(options);
  const auto request = crosscheck_request(options);
  if (!request) return request.error();
  const auto simulation = request->revealed ? gpu::revealed_simulation(
                                                  *request->backend, {.seed = request->common.seed})
                                            : gpu::named_simulation(request->common.dispatch);
  std::vector<CrosscheckResult> results;
  results.reserve(request->cases.size());
  std::size_t differing = 0;
  std::set<std::string> shrunk;  // of each kind one difference is made small
  Progress progress("crosscheck", options);
  for (const CrosscheckCase& one : request->cases) {
    progress.show(static_cast<double>(results.size()) / static_cast<double>(request->cases.size()));
    const std::string kind = kind_of(one.check);
    results.push_back(run_case(*request->backend, *simulation, one, request->common.seed,
                               !shrunk.contains(kind)));
    const CrosscheckResult& result = results.back();
    const bool missing = !result && result.error().kind == ErrorKind::unavailable;
    const bool untold = !result && result.error().kind == ErrorKind::cannot_tell;
    if (!result && !untold && (!missing || request->named_ops)) return result.error();
    if (result && result->different > 0) {
      ++differing;
      shrunk.insert(kind);
    }
  }
  const bool nothing = std::ranges::none_of(results, &CrosscheckResult::has_value);
  if (nothing) return results.front().error();
  Answer answer;
  answer.report = crosscheck_report(*request, results);
  const auto untold = std::ranges::find_if(results, [](const CrosscheckResult& result) {
    return !result && result.error().kind == ErrorKind::cannot_tell;
  });
  if (differing > 0) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint =
        fmt::format("not equal to the bit: {} of {} checks", differing, results.size());
  } else if (untold != results.end()) {
    answer.exit_code = ExitCode::cannot_tell;
    answer.complaint = untold->error().message;
  }
  return answer;
}

}  // namespace

const Command crosscheck_command{
    .name = "crosscheck",
    .summary = "a real back end against the simulator: is every bit equal, operator by operator",
    .synopsis = "[--backend NAME] [--model M] [OPTIONS]",
    .description =
        "Runs each operator of a model on a back end and in the simulator, with the same numbers,\n"
        "and compares bits: Gaussian numbers, and numbers of which half are the negated other\n"
        "half, so that sums are nothing but rounding. A difference is printed with its place and\n"
        "with the smallest case that could be made of it (all other numbers 0).\n"
        "\n"
        "--end-to-end computes a whole prefill and decode steps on both sides and compares what\n"
        "every operator gives, every hidden state and every logit. Exit 1: something differs;\n"
        "4: no order explains what was seen (--revealed); 5: a back end that is not here.",
    .options = crosscheck_option_rows(),
    .examples =
        "  kvsim crosscheck --model kv-tiny --dtype bf16\n"
        "  kvsim crosscheck --model kv-tiny --end-to-end --attention eager",
    .run = run_crosscheck,
};

}  // namespace kvsim
