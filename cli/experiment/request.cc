// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/experiment/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cli/build_info.h"
#include "cli/experiment/plan_file.h"
#include "cli/printable.h"
#include "cli/replay/settings.h"
#include "cli/run/arm_options.h"
#include "cli/run/engine_choice.h"
#include "cli/run/loaded_model.h"
#include "cli/run/prompt_options.h"
#include "experiments/controls/controls.h"

namespace kvsim {
namespace {

using experiments::Strategy;
using experiments::StudyRow;

constexpr std::array own_rows{
    OptionSpec{
        "--config", "PLAN",
        "a plan: a TOML file whose keys are these options without dashes, or the name of one "
        "in data/plans (illusion, confirm, ...); the command line counts before it"},
    OptionSpec{
        "--strategy", "NAME",
        "greedy (default), top-k (50, temperature 0.7) or top-p (0.95, temperature 0.7); may "
        "be repeated",
        true},
    OptionSpec{"--seed", "N", "a seed of random strategies (default 1); may be repeated", true},
    OptionSpec{"--max-new-tokens", "N", "tokens to generate, 1 to 1048576 (default 64)"},
    OptionSpec{"--ignore-eos", "", "go on behind a token that ends the text"},
    OptionSpec{"--out", "FOLDER",
               "folder of the records, NAME.jsonl for each study (default experiments)"},
    OptionSpec{"--no-controls", "",
               "without the controls, which run first and are kept in --out for equal arms"},
    OptionSpec{"--resume", "", "go on with the interrupted studies in --out"},
    OptionSpec{"--shard", "I/N",
               "only every Nth piece of work, from the Ith (0 <= I < N); kvsim "
               "merge joins them"},
    OptionSpec{"--dry-run", "", "print what would run and about how long it takes; writes nothing"},
    OptionSpec{"--threads", "N",
               "threads, 1 to 1024 (default: one for each CPU); never changes a result"},
};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// The studies that are named; `controls` alone is none of them.
Result<std::vector<const StudyRow*>> studies_of(const ParsedOptions& options) {
  const std::span<const StudyRow> rows = experiments::study_rows();
  std::vector<std::string_view> names{"all", experiments::controls_row().name};
  std::vector<const StudyRow*> studies;
  for (const StudyRow& row : rows) names.push_back(row.name);
  if (options.positionals().size() != 1) {
    return usage(fmt::format("{} studies are named; one of {} is accepted",
                             options.positionals().size(), join_words(names, "or")));
  }
  const std::string& name = options.positionals().front();
  const bool is_controls = name == experiments::controls_row().name;
  if (is_controls && options.has("--no-controls")) {
    return usage("--no-controls is given with controls; one of the two is accepted");
  }
  for (const StudyRow& row : rows) {
    if (name == "all" || name == row.name) studies.push_back(&row);
  }
  if (studies.empty() && !is_controls) return unknown_word("study", name, names);
  return studies;
}

Result<bool> take_strategies(const ParsedOptions& options, experiments::StudySetup& setup) {
  std::vector<std::string> names = options.values("--strategy");
  if (names.empty()) names = {"greedy"};
  for (const std::string& name : names) {
    Result<Strategy> strategy = experiments::strategy_named(name);
    if (!strategy) return usage("--strategy: " + strategy.error().message);
    if (std::ranges::find(setup.strategies, *strategy) != setup.strategies.end()) {
      return usage(fmt::format("--strategy {} is given twice; each once is accepted", name));
    }
    setup.strategies.push_back(std::move(*strategy));
  }
  if (!options.has("--seed")) return true;
  setup.seeds.clear();
  for (const std::string& text : options.values("--seed")) {
    const auto seed = parse_integer("--seed", text, 0, std::numeric_limits<std::int64_t>::max());
    if (!seed) return seed.error();
    const auto number = static_cast<std::uint64_t>(*seed);
    if (std::ranges::find(setup.seeds, number) != setup.seeds.end()) {
      return usage(fmt::format("--seed {} is given twice; each once is accepted", number));
    }
    setup.seeds.push_back(number);
  }
  return true;
}

Result<bool> take_run(const ParsedOptions& options, ExperimentRequest& request) {
  request.folder = options.value("--out").value_or("experiments");
  if (request.folder.empty()) return usage("--out is ''; the path of a folder is accepted");
  request.has_controls = !options.has("--no-controls");
  request.dry_run = options.has("--dry-run");
  request.run.resume = options.has("--resume");
  if (const auto text = options.value("--shard")) {
    const auto shard = experiments::parse_shard(*text);
    if (!shard) return usage("--shard: " + shard.error().message);
    request.run.shard = *shard;
  }
  const auto tokens = integer_option(options, "--max-new-tokens", 64, 1, std::int64_t{1} << 20);
  if (!tokens) return tokens.error();
  request.setup.new_tokens = *tokens;
  request.setup.stops = !options.has("--ignore-eos");
  request.setup.version = build_info::version();
  return true;
}

/// Everything but the model.
Result<bool> take_options(const ParsedOptions& options, ExperimentRequest& request) {
  auto studies = studies_of(options);
  if (!studies) return studies.error();
  request.studies = std::move(*studies);
  auto arms = two_arms_from(options);
  if (!arms) return arms.error();
  request.setup.on = std::move((*arms)[0]);
  request.setup.off = std::move((*arms)[1]);
  Result<bool> done = take_strategies(options, request.setup);
  if (done) done = take_run(options, request);
  return done;
}

}  // namespace

Result<std::vector<StudyRun>> ExperimentRequest::runs() const {
  std::vector<StudyRun> list;
  list.reserve(studies.size() + 1);
  if (has_controls && run.shard.index == 0) {
    Result<std::string> path = experiments::controls_path(controls_setup, folder);
    if (!path) return path.error();
    experiments::StudyRunOptions options = run;
    options.resume = true;
    options.shard = {};
    list.push_back(
        {&experiments::controls_row(), &controls_setup, std::move(*path), std::move(options)});
  }
  const std::string part =
      run.shard.of == 1 ? std::string() : fmt::format(".{}-of-{}", run.shard.index, run.shard.of);
  for (const StudyRow* row : studies) {
    list.push_back({row, &setup, fmt::format("{}/{}{}.jsonl", folder, row->name, part), run});
  }
  return list;
}

std::span<const OptionSpec> experiment_option_rows() {
  static const std::vector<OptionSpec> rows = [] {
    const std::array tables{model_option_rows(), engine_option_rows(), prompt_option_rows(),
                            pair_option_rows(), std::span<const OptionSpec>(own_rows)};
    return joined_rows(tables);
  }();
  return rows;
}

Result<ExperimentRequest> experiment_request(const ParsedOptions& given) {
  ParsedOptions options = given;
  if (const auto path = given.value("--config")) {
    const Result<std::string> file = plan_path(*path);
    if (!file) return file.error();
    Result<ParsedOptions> planned = with_plan_file(given, experiment_option_rows(), *file);
    if (!planned) return planned.error();
    options = std::move(*planned);
  }
  ExperimentRequest request;
  if (const Result<bool> taken = take_options(options, request); !taken) return taken.error();
  const std::array both{request.setup.on, request.setup.off};
  const Result<std::string> engine_name = chosen_engine(options, both);
  if (!engine_name) return engine_name.error();
  Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();

  Result<LoadedModel> model = loaded_model(options);
  if (!model) return model.error();
  Result<PromptList> prompts = prompt_list(options, encoding_of(*model));
  if (!prompts) return prompts.error();
  request.prompt_source = std::move(prompts->source);
  request.setup.prompts.reserve(prompts->prompts.size());
  for (std::size_t i = 0; i < prompts->prompts.size(); ++i) {
    request.setup.prompts.push_back(
        {std::move(prompts->prompts[i]), std::move(prompts->answers[i])});
  }
  // Pieces of work are spread over threads first; what is left works inside one.
  const auto pieces = std::ssize(request.setup.prompts);
  request.run.threads = static_cast<int>(std::min<std::int64_t>(engine->threads, pieces));
  engine->threads /= request.run.threads;
  Result<std::unique_ptr<Engine>> made =
      make_engine(*engine_name, std::move(model->checkpoint), model->name, *engine);
  if (!made) return made.error();
  request.engine = std::move(*made);
  request.setup.engine = request.engine.get();
  if (const auto& tokenizer = model->tokenizer; tokenizer) {
    request.setup.decode = [tokenizer = *tokenizer](std::span<const TokenId> ids) {
      Result<std::string> text = tokenizer.decode(ids);
      return text ? std::move(*text) : std::string();
    };
  }
  request.controls_setup = experiments::controls_setup(request.setup);
  return request;
}

}  // namespace kvsim
