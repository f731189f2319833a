// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/run_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/build_info.h"
#include "cli/model_places.h"
#include "cli/printable.h"
#include "cli/replay/settings.h"
#include "cli/run/arm_options.h"
#include "cli/run/engine_choice.h"
#include "cli/run/loaded_model.h"
#include "cli/run/prompt_options.h"
#include "model/checkpoint.h"
#include "model/model_store.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array request_rows{
    OptionSpec{"--explain", "",
               "print which kernel computes each operator of the arms, side by side, as --set "
               "takes it; runs nothing"},
    OptionSpec{"--out", "FILE", "write records, JSON lines (docs/run.md); FILE must not exist"},
    OptionSpec{"--resume", "", "go on with the interrupted run in --out"},
    OptionSpec{"--digests", "LEVEL",
               "what records have digests of: none, layer (default: hidden states) or state (K "
               "and V as well)"},
    OptionSpec{"--dump", "LIST",
               "layers, kv, logits: write them as safetensors into the folder FILE.dump of --out"},
    OptionSpec{"--threads", "N",
               "threads, 1 to 1024 (default: one for each CPU); never changes a result"},
};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> take_digests(const ParsedOptions& options, RunOptions& run) {
  constexpr std::array<std::string_view, 3> levels{"none", "layer", "state"};
  const std::string level = options.value("--digests").value_or("layer");
  if (std::find(levels.begin(), levels.end(), level) == levels.end()) {
    return unknown_word("--digests", level, levels);
  }
  run.layer_digests = level != "none";
  run.state_digests = level == "state";
  return true;
}

Result<bool> take_dumps(const ParsedOptions& options, RunRequest& request) {
  constexpr std::array<std::string_view, 3> words{"layers", "kv", "logits"};
  const auto list = options.value("--dump");
  if (!list) return true;
  if (request.out.empty() || request.resume) {
    return usage("--dump is accepted with --out, and without --resume");
  }
  std::string_view left = *list;
  while (true) {
    const std::string_view word = left.substr(0, left.find(','));
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      return unknown_word("--dump", word, words);
    }
    if (word == "layers") request.dump_layers = true;
    if (word == "kv") request.dump_state = true;
    if (word == "logits") request.dump_logits = true;
    if (word.size() == left.size()) return true;
    left.remove_prefix(word.size() + 1);
  }
}

Result<bool> take_output(const ParsedOptions& options, RunRequest& request) {
  request.out = options.value("--out").value_or("");
  request.resume = options.has("--resume");
  request.explain = options.has("--explain");
  if (options.has("--out") && request.out.empty()) {
    return usage("--out is ''; the path of a file is accepted");
  }
  if (request.resume && request.out.empty()) return usage("--resume is given without --out");
  std::error_code none;
  if (!request.resume && !request.explain && fs::exists(request.out, none)) {
    return Error{ErrorKind::file, fmt::format("{}: exists; a new file, or --resume is accepted",
                                              printable(request.out, 4096))};
  }
  return take_dumps(options, request);
}

}  // namespace

std::span<const OptionSpec> request_option_rows() { return request_rows; }

Result<RunRequest> run_request(const ParsedOptions& options) {
  RunRequest request;
  Result<std::vector<Arm>> arms = arms_from(options);
  if (!arms) return arms.error();
  const Result<std::string> engine_name = chosen_engine(options, *arms);
  if (!engine_name) return engine_name.error();
  if (const auto taken = take_output(options, request); !taken) return taken.error();
  Result<RunOptions> run = run_options_from(options);
  if (!run) return run.error();
  if (const auto taken = take_digests(options, *run); !taken) return taken.error();
  run->arms = std::move(*arms);
  run->version = build_info::version();
  Result<EngineOptions> engine = engine_options(options);
  if (!engine) return engine.error();
  request.threads = engine->threads;

  Result<LoadedModel> model = loaded_model(options);
  if (!model) return model.error();
  request.model = model->name;
  const PromptEncoding encoding = encoding_of(*model);
  Result<PromptList> prompts = prompt_list(options, encoding);
  if (!prompts) return prompts.error();
  Result<std::vector<std::int64_t>> neighbours = neighbour_lengths(options, encoding);
  if (!neighbours) return neighbours.error();
  run->launch.neighbours = std::move(*neighbours);
  request.prompt_source = std::move(prompts->source);

  // Prompts are spread over threads first; what is left works inside one.
  run->threads =
      static_cast<int>(std::min<std::int64_t>(request.threads, std::ssize(prompts->prompts)));
  engine->threads = request.threads / run->threads;
  Result<std::unique_ptr<Engine>> made =
      make_engine(*engine_name, std::move(model->checkpoint), request.model, *engine);
  if (!made) return made.error();
  request.engine = std::move(*made);
  Result<PreparedRun> prepared =
      PreparedRun::make(*request.engine, std::move(*run), std::move(prompts->prompts));
  if (!prepared) return prepared.error();
  request.run = std::move(*prepared);
  request.text = TokenText(std::move(model->tokenizer));
  return request;
}

}  // namespace kvsim
