// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/model_flip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/fuzz/model_report.h"
#include "cli/fuzz/request.h"
#include "cli/fuzz/search_run.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/replay/settings.h"
#include "cli/run/arm_options.h"
#include "cli/run/engine_choice.h"
#include "cli/run/loaded_model.h"
#include "cli/run/prompt_options.h"
#include "cli/run/token_text.h"
#include "cli/sink.h"
#include "fuzz/flip/model_case.h"
#include "fuzz/flip/model_score.h"
#include "fuzz/flip/model_search.h"
#include "fuzz/flip/model_shrink.h"
#include "run/sim_engine.h"

namespace kvsim {
namespace {

constexpr std::int64_t default_model_runs = 256;
constexpr std::int64_t default_new_tokens = 32;
constexpr std::int64_t generated_tokens = 12;  ///< of a prompt where none is given
constexpr std::int64_t most_shrunk_cases = 10'000;
constexpr std::uint64_t prompt_stream = std::uint64_t{1} << 61;

constexpr std::array model_rows{
    OptionSpec{"--model", "M",
               "texts of a model instead: kv-tiny, a name that kvsim fetch knows, or a path; the "
               "arms are --arm"},
    OptionSpec{"--max-new-tokens", "N",
               "model: tokens that each prompt is followed by, 1 to 65536 (default 32)"},
};

/// Rows of other commands that a search with a model takes as they are.
constexpr std::array<std::string_view, 8> shared_names{"--prompt", "--prompts", "--ids", "--field",
                                                       "--chat",   "--limit",   "--arm", "--set"};

/// Options of the search for numbers.
constexpr std::array<std::string_view, 19> number_options{
    "--head-dim",   "--gqa",        "--kv-heads",      "--kv-len",     "--terms",
    "--format",     "--accumulate", "--product",       "--device",     "--on",
    "--off",        "--alone",      "--on-splits",     "--off-splits", "--range",
    "--subnormals", "--few-shot",   "--chat-template", "--sample-seed"};

/// A model on the simulator, with what turns its tokens into text.
struct SimulatedModel {
  std::unique_ptr<Engine> engine;
  TokenText text{std::nullopt};
};

Result<SimulatedModel> simulated(LoadedModel model) {
  // Prompts are spread over threads; a pass has one.
  Result<std::unique_ptr<Engine>> engine =
      make_engine(sim_engine_name, std::move(model.checkpoint), model.name, {.threads = 1});
  if (!engine) return engine.error();
  return SimulatedModel{std::move(*engine), TokenText(std::move(model.tokenizer))};
}

/// The prompts of the options, or of the model's own; none where there are neither.
Result<PromptList> given_prompts(const ParsedOptions& options, const LoadedModel& model) {
  PromptEncoding encoding = encoding_of(model);
  encoding.own_limit = 1000;
  const bool named = options.has("--prompt") || options.has("--prompts") || options.has("--ids");
  if (!named && encoding.own_prompts.empty()) return PromptList{};
  return prompt_list(options, encoding);
}

/// The prompts as lists of tokens; generated ones where none is given.
Result<std::vector<fuzz::Prompt>> tokens_of(PromptList& given, const SearchLimits& limits,
                                            const fuzz::ModelScorer& scorer) {
  std::vector<fuzz::Prompt> prompts;
  prompts.reserve(given.prompts.size());
  for (RunPrompt& prompt : given.prompts) prompts.push_back(std::move(prompt.ids));
  if (!prompts.empty()) return prompts;
  for (std::int64_t i = 0; i < limits.islands; ++i) {
    fuzz::Random random({limits.seed, prompt_stream + static_cast<std::uint64_t>(i), 0});
    auto text = scorer.generated(generated_tokens, random);
    if (!text) return text.error();
    prompts.push_back(std::move(*text));
  }
  given.source = fmt::format("{} of the model's own, generated", prompts.size());
  return prompts;
}

/// A case with the model that it is of.
struct OpenedCase {
  fuzz::ModelCase model_case;
  SimulatedModel model;
  fuzz::ModelScorer scorer;
};

/// The model is the case's, or that of --model.
Result<OpenedCase> opened(const ParsedOptions& options, const std::string& path,
                          const std::string& text) {
  auto model_case = fuzz::parse_model_case(text);
  if (!model_case) return in_file(path, model_case.error());
  Result<LoadedModel> loaded =
      loaded_model(options, options.value("--model").value_or(model_case->model));
  if (!loaded) return in_file(path, loaded.error());
  auto model = simulated(std::move(*loaded));
  if (!model) return model.error();
  auto scorer = fuzz::ModelScorer::make(*model->engine, model_case->arms, 1);
  if (!scorer) return in_file(path, scorer.error());
  return OpenedCase{std::move(*model_case), std::move(*model), std::move(*scorer)};
}

}  // namespace

std::span<const OptionSpec> model_flip_options() {
  static const std::vector<OptionSpec> rows = [] {
    std::vector<OptionSpec> all(model_rows.begin(), model_rows.end());
    for (const auto table : {prompt_option_rows(), pair_option_rows()}) {
      std::ranges::copy_if(table, std::back_inserter(all), [](const OptionSpec& row) {
        return std::ranges::find(shared_names, row.name) != shared_names.end();
      });
    }
    return all;
  }();
  return rows;
}

Result<Answer> run_model_flip(const ParsedOptions& options) {
  for (const std::string_view name : number_options) {
    if (!options.has(name)) continue;
    return Error{ErrorKind::usage,
                 fmt::format("{} is given with --model, whose paths are two of --arm", name)};
  }
  if (options.value("--target").value_or("flip") != "flip") {
    return Error{ErrorKind::usage, "--target is given with --model; flip alone is accepted there"};
  }
  const auto limits = search_limits(options, default_model_runs);
  if (!limits) return limits.error();
  const auto new_tokens = integer_option(options, "--max-new-tokens", default_new_tokens, 1, 65536);
  if (!new_tokens) return new_tokens.error();
  auto arms = two_arms_from(options);
  if (!arms) return arms.error();
  Result<LoadedModel> loaded = loaded_model(options);
  if (!loaded) return loaded.error();
  Result<PromptList> given = given_prompts(options, *loaded);
  if (!given) return given.error();
  const auto model = simulated(std::move(*loaded));
  if (!model) return model.error();
  const auto scorer = fuzz::ModelScorer::make(*model->engine, std::move(*arms), *new_tokens);
  if (!scorer) return scorer.error();
  auto prompts = tokens_of(*given, *limits, *scorer);
  if (!prompts) return prompts.error();
  fuzz::ModelSearch search(
      *scorer, std::move(*prompts),
      {.seed = limits->seed, .islands = limits->islands, .threads = limits->threads});
  const Result<bool> done =
      run_search(*limits, options,
                 {.read_state = [&](std::string_view text) { return search.read_state(text); },
                  .state_text = [&] { return search.state_text(); },
                  .run =
                      [&](std::int64_t total, const std::function<bool(std::int64_t)>& go_on) {
                        return search.run(total, go_on);
                      }});
  if (!done) return done.error();
  std::string file;
  if (const fuzz::ModelFlip* const best = search.best(); best != nullptr) {
    auto written =
        write_case(*limits, fuzz::case_file_name(best->flip_case), fuzz::to_text(best->flip_case));
    if (!written) return written.error();
    file = std::move(*written);
  }
  Answer answer;
  answer.report = model_flip_report({*limits, given->source, file}, *scorer, search, model->text);
  return answer;
}

Result<Answer> replay_model(const ParsedOptions& options, const std::string& path,
                            const std::string& text) {
  const auto file = opened(options, path, text);
  if (!file) return file.error();
  const auto flip = file->scorer.judge(file->model_case);
  if (!flip) return in_file(path, flip.error());
  Answer answer;
  answer.report = model_replay_report(path, file->scorer, *flip, file->model.text);
  if (flip->holds()) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = "what the case claims is there: flip";
  }
  return answer;
}

Result<Answer> shrink_model(const ParsedOptions& options, const std::string& path,
                            const std::string& text) {
  const auto floor = float_option(options, "--floor", 0x1p-40F, 1.0F);
  if (!floor) return floor.error();
  const auto file = opened(options, path, text);
  if (!file) return file.error();
  Progress progress("fuzz shrink", options);
  const auto shrunk = fuzz::shrink(file->scorer, file->model_case, floor->value_or(0.0F),
                                   most_shrunk_cases, [&](double share) { progress.show(share); });
  if (!shrunk) return in_file(path, shrunk.error());
  const std::string out = options.value("--out").value_or("");
  if (!out.empty()) {
    const auto written = write_output_file(out, fuzz::to_text(shrunk->flip.flip_case));
    if (!written) return written.error();
  }
  Answer answer;
  answer.report = model_shrink_report(path, out, file->scorer, *shrunk, file->model.text);
  return answer;
}

}  // namespace kvsim
