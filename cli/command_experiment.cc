// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/experiment/request.h"
#include "cli/experiment/summary_report.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "experiments/controls/controls.h"
#include "experiments/work.h"

namespace kvsim {
namespace {

using experiments::StudyRow;

/// The first tokens of an arm's text: the rows of the model that it computes, and the seconds.
struct TimedText {
  std::int64_t rows = 0;
  double seconds = 0;
};

Result<TimedText> timed_text(const Engine& engine, const Arm& arm,
                             std::span<const TokenId> prompt) {
  constexpr std::int64_t tokens = 3;
  Result<experiments::ArmWork> work = experiments::ArmWork::of(engine, arm);
  if (!work) return work.error();
  const Result<std::int64_t> rows = work->text(std::ssize(prompt), tokens);
  if (!rows) return rows.error();
  auto first = work->arm().open(prompt.first(1), 1);  // what is made once is not measured
  if (!first) return first.error();
  if (const auto pass = first->next({}); !pass) return pass.error();
  auto text = work->arm().open(prompt, tokens);
  if (!text) return text.error();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < tokens; ++i) {
    const auto pass = text->next({});
    if (!pass) return pass.error();
    text->feed(prompt.back());
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return TimedText{*rows, taken.count()};
}

/// Seconds that a row of the model takes, about: of the first tokens of both arms.
Result<double> seconds_per_row(const ExperimentRequest& request) {
  const experiments::StudySetup& setup = request.setup;
  TimedText both;
  for (const Arm* const arm : {&setup.on, &setup.off}) {
    const auto text = timed_text(*setup.engine, *arm, setup.prompts.front().prompt.ids);
    if (!text) return text.error();
    both.rows += text->rows;
    both.seconds += text->seconds;
  }
  return both.seconds / static_cast<double>(both.rows);
}

std::string time_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  return seconds < 5400 ? fmt::format("{:.0f} min", seconds / 60)
                        : fmt::format("{:.1f} h", seconds / 3600);
}

/// What would run.
Result<Report> dry_run_report(const ExperimentRequest& request, const std::vector<StudyRun>& runs) {
  const Result<double> per_row = seconds_per_row(request);
  if (!per_row) return per_row.error();
  Table table;
  table.title = "what would run";
  table.columns = {{"study", "study", "", Align::left},
                   {"pieces", "pieces of work", "", Align::right},
                   {"rows", "rows of the model", "", Align::right},
                   {"time", "time, about", "", Align::right},
                   {"records", "records", "", Align::left}};
  double all = 0;
  for (const StudyRun& run : runs) {
    const auto units = run.row->make()->units(*run.setup);
    if (!units) return units.error();
    std::int64_t rows = 0;
    for (const experiments::StudyUnit& unit : *units) rows += unit.rows;
    const double seconds = static_cast<double>(rows) * *per_row / run.options.threads /
                           static_cast<double>(run.options.shard.of);
    all += seconds;
    table.rows.push_back({Cell(run.row->name), Cell(fmt::to_string(units->size()), units->size()),
                          Cell(fmt::to_string(rows), rows), Cell(time_text(seconds), nullptr),
                          Cell(printable(run.path, 200))});
  }
  Report report;
  report.schema = "kvsim.experiment_plan/1";
  report.command = "experiment";
  report.headline = fmt::format("{} of {}, about {}; nothing was written.",
                                runs.size() == 1 ? "1 study" : "Studies",
                                printable(request.prompt_source, 200), time_text(all));
  report.input = {{"model", request.engine->model()}, {"engine", request.engine->name()}};
  report.result = {{"studies", rows_as_json(table)}};
  report.tables.push_back(std::move(table));
  return report;
}

Result<bool> carry_out(const ExperimentRequest& request, std::vector<StudyRun>& runs,
                       const ParsedOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(request.folder, error);
  if (error) {
    return Error{ErrorKind::file, fmt::format("{}: cannot be made: {}",
                                              printable(request.folder, 4096), error.message())};
  }
  for (StudyRun& run : runs) {
    Progress progress(fmt::format("experiment {}", run.row->name), options);
    run.options.progress = [&](double share) { progress.show(share); };
    Result<bool> done = experiments::run_study(*run.row, *run.setup, run.path, run.options);
    if (!done) return done;
  }
  return true;
}

Result<Answer> run_experiment(const ParsedOptions& options) {
  const Result<ExperimentRequest> request = experiment_request(options);
  if (!request) return request.error();
  Result<std::vector<StudyRun>> runs = request->runs();
  if (!runs) return runs.error();
  Answer answer;
  if (request->dry_run) {
    Result<Report> report = dry_run_report(*request, *runs);
    if (!report) return report.error();
    answer.report = std::move(*report);
    return answer;
  }
  if (const Result<bool> done = carry_out(*request, *runs, options); !done) return done.error();
  SummaryReport report("experiment");
  for (const StudyRun& run : *runs) {
    if (run.options.shard.of > 1) continue;
    const Result<bool> added = report.add(run.path);
    if (!added) return added.error();
  }
  if (const std::string failed = report.failed(); !failed.empty()) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = failed;
  }
  answer.report = report.take();
  if (const experiments::Shard& shard = request->run.shard; shard.of > 1) {
    if (!answer.report.headline.empty()) answer.report.headline += " ";
    answer.report.headline +=
        fmt::format("Shard {} of {} is written; kvsim merge joins them.", shard.index, shard.of);
  }
  return answer;
}

/// The table of studies, a line each.
std::string_view description() {
  static const std::string text = [] {
    std::string lines =
        "Runs a study on the simulator or on libtorch, writes its records, and says what they "
        "say.\n"
        "Records are the same bytes whatever the threads, shards and interruptions. The controls "
        "run\n"
        "first: where one fails, so does the command (exit code 1). Studies:\n";
    const StudyRow& controls = experiments::controls_row();
    lines += fmt::format("  {:<22}{}\n", controls.name, controls.question);
    for (const StudyRow& row : experiments::study_rows()) {
      lines += fmt::format("  {:<22}{}\n", row.name, row.question);
    }
    lines.pop_back();
    return lines;
  }();
  return text;
}

}  // namespace

const Command experiment_command{
    .name = "experiment",
    .summary = "the studies of the papers on a model, with their controls and statistics",
    .synopsis = "STUDY|controls|all [--model M] [--prompts FILE] [--config FILE] [--out FOLDER]",
    .description = description(),
    .options = experiment_option_rows(),
    .examples =
        "  kvsim experiment behaviour --model kv-tiny --limit 20 --max-new-tokens 64\n"
        "  kvsim experiment behaviour --config plan.toml --engine torch-cpu --resume",
    .run = run_experiment,
};

}  // namespace kvsim
