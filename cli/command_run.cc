// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/replay/settings.h"
#include "cli/run/arm_options.h"
#include "cli/run/engine_choice.h"
#include "cli/run/loaded_model.h"
#include "cli/run/prompt_options.h"
#include "cli/run/run_dump.h"
#include "cli/run/run_report.h"
#include "run/record_writer.h"
#include "run/run_file.h"
#include "sim/engine/simd_level.h"

namespace kvsim {
namespace {

/// The rows of several tables as one.
std::span<const OptionSpec> run_options() {
  static const std::vector<OptionSpec> rows = [] {
    const std::array tables{model_option_rows(),  request_option_rows(), engine_option_rows(),
                            prompt_option_rows(), pair_option_rows(),    arm_option_rows()};
    return joined_rows(tables);
  }();
  return rows;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

Result<RunSummary> carry_out(const RunRequest& request, const RunOutput& output) {
  if (request.out.empty()) return request.run.run(output);
  const Result<RunFileSummary> done = run_to_file(request.run, request.out, request.resume, output);
  if (!done) return done.error();
  return done->run;
}

Result<bool> write_meta(const RunRequest& request, const ParsedOptions& options,
                        std::chrono::steady_clock::time_point start) {
  if (request.out.empty()) return true;
  const auto engine = engine_options(options);
  if (!engine) return engine.error();
  RunMeta meta;
  meta.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  meta.host = host_name();
  meta.threads = request.threads;
  meta.simd = simd_level_name(engine->level);
  return write_run_meta(request.out, meta);
}

Result<Answer> run_run(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return Error{ErrorKind::usage, fmt::format("{} is given; run takes options only (kvsim run "
                                               "--help)",
                                               in_quotes(options.positionals().front()))};
  }
  const auto start = std::chrono::steady_clock::now();
  const Result<RunRequest> request = run_request(options);
  if (!request) return request.error();
  Answer answer;
  if (request->explain) {
    Result<Report> report = explain_report(*request);
    if (!report) return report.error();
    answer.report = std::move(*report);
    return answer;
  }
  RunResults results;
  RunDump dump(request->run, request->out + ".dump", request->dump_logits);
  const bool has_dump = request->dump_layers || request->dump_state || request->dump_logits;
  const Result<RunSummary> summary = [&] {
    Progress progress("run", options);
    RunOutput output;
    output.line = [&](const RecordLine& line) -> Result<bool> {
      results.add(line);
      return true;
    };
    output.dump_state = request->dump_state;
    output.dump_layers = request->dump_layers;
    if (has_dump) output.dump = [&](const StepDump& step) { return dump.add(step); };
    output.progress = [&](double share) { progress.show(share); };
    return carry_out(*request, output);
  }();
  if (!summary) return summary.error();
  if (has_dump) {
    if (const auto written = dump.finish(); !written) return written.error();
  }
  if (const auto written = write_meta(*request, options, start); !written) return written.error();
  answer.report = run_report(*request, results, *summary);
  return answer;
}

}  // namespace

const Command run_command{
    .name = "run",
    .summary = "run a model with the cache and without it, or with any kernels, and compare",
    .synopsis = "[--model M] [--prompts FILE | --ids FILE | --prompt TEXT] [--arm ARM ...]",
    .description =
        "Runs a model's prompts through arms, which differ in how the key-value cache is built "
        "and\n"
        "in the kernels that compute, step by step and bit for bit, and tells where they part:\n"
        "full-vocabulary KL and JS, margins, the first other logit, the first other token.\n"
        "Without --arm: on (cache) against off (everything again for each token).",
    .options = run_options(),
    .examples =
        "  kvsim run --model smollm2-135m --prompts gsm8k.jsonl --limit 4 --max-new-tokens 32\n"
        "  kvsim run --model M --prompts F --arm on --arm on:dispatch=batch-invariant@bi --explain",
    .run = run_run,
};

}  // namespace kvsim
