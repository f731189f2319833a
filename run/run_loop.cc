// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/run_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "model/quote.h"
#include "run/launch_settings.h"
#include "run/prompt_run.h"
#include "sim/parallel.h"

namespace kvsim {
namespace {

constexpr std::size_t largest_arms = 16;
constexpr std::int64_t largest_new_tokens = std::int64_t{1} << 20;

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Error with_front(const std::string& front, const Error& error) {
  return {error.kind, fmt::format("{}: {}", front, error.message)};
}

Result<bool> check_options(const RunOptions& options) {
  if (options.arms.empty() || options.arms.size() > largest_arms) {
    return usage(fmt::format("{} arms; accepted: 1 to {}", options.arms.size(), largest_arms));
  }
  std::set<std::string_view> labels;
  for (const Arm& arm : options.arms) {
    if (labels.insert(arm.label).second) continue;
    return usage(fmt::format("two arms have the label {}; accepted: unequal ones (ARM@LABEL)",
                             quote(arm.label)));
  }
  if (options.max_new_tokens < 1 || options.max_new_tokens > largest_new_tokens) {
    return usage(fmt::format("{} new tokens; accepted: 1 to {}", options.max_new_tokens,
                             largest_new_tokens));
  }
  return check_sampling(options.sampling);
}

Result<bool> check_prompt(const RunPrompt& prompt, const Engine& engine,
                          const RunOptions& options) {
  const std::string front = fmt::format("prompt {}", prompt.number);
  const std::int64_t tokens = std::ssize(prompt.ids);
  if (tokens == 0) return usage(front + ": no tokens; accepted: one token or more");
  const std::int64_t vocabulary = engine.vocabulary();
  for (const TokenId id : prompt.ids) {
    if (id >= 0 && id < vocabulary) continue;
    return usage(fmt::format("{}: token id {}; accepted: 0 to {}, the model's vocabulary", front,
                             id, vocabulary - 1));
  }
  const std::int64_t longest = engine.max_positions();
  if (longest > 0 && tokens > longest - options.max_new_tokens) {
    return usage(
        fmt::format("{}: {} tokens and {} new ones; accepted: {} together, the model's "
                    "longest context",
                    front, tokens, options.max_new_tokens, longest));
  }
  for (const Arm& arm : options.arms) {
    const auto plan = cache_plan(arm, tokens, options.max_new_tokens - 1);
    if (!plan) return with_front(front, plan.error());
  }
  return true;
}

/// Brings lines that several prompts make at once into the prompts' order.
class OrderedLines {
 public:
  OrderedLines(const std::function<Result<bool>(const RecordLine&)>& sink, std::size_t first)
      : sink_(sink), front_(first) {}

  Result<bool> add(std::size_t prompt, const RecordLine& line) {
    const std::lock_guard lock(mutex_);
    if (prompt == front_) return sink_(line);
    waiting_[prompt].push_back(line);
    return true;
  }
  /// No more lines of that prompt.
  Result<bool> finish(std::size_t prompt) {
    const std::lock_guard lock(mutex_);
    finished_.insert(prompt);
    while (finished_.erase(front_) > 0) {
      ++front_;
      const auto lines = waiting_.extract(front_);
      if (lines.empty()) continue;
      for (const RecordLine& line : lines.mapped()) {
        if (Result<bool> done = sink_(line); !done) return done;
      }
    }
    return true;
  }

 private:
  const std::function<Result<bool>(const RecordLine&)>& sink_;
  std::mutex mutex_;
  std::size_t front_;
  std::set<std::size_t> finished_;
  std::map<std::size_t, std::vector<RecordLine>> waiting_;
};

/// The error of the first prompt that has one.
class FirstError {
 public:
  void keep(std::size_t prompt, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (prompt >= prompt_) return;
    prompt_ = prompt;
    error_ = error;
  }
  /// Whether a prompt before this one, or this one, has failed: nobody needs what it computes.
  [[nodiscard]] bool is_before(std::size_t prompt) const { return prompt_ <= prompt; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> prompt_{static_cast<std::size_t>(-1)};
  std::optional<Error> error_;
};

/// Counts finished steps for the progress.
class Share {
 public:
  Share(const std::function<void(double)>& show, std::int64_t steps)
      : show_(show), steps_(static_cast<double>(steps)) {}
  void step_done() {
    const std::lock_guard lock(mutex_);
    done_ += 1;
    if (show_) show_(std::min(1.0, done_ / steps_));
  }
  /// A prompt may end before its last possible step.
  void prompt_done(std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    done_ = std::max(done_, static_cast<double>(steps));
  }

 private:
  const std::function<void(double)>& show_;
  std::mutex mutex_;
  double steps_;
  double done_ = 0;
};

/// What kernels refuse of a prompt's first passes is refused before anything is computed.
Result<bool> check_kernels(const PreparedArm& arm, std::int64_t prompt) {
  for (const std::int64_t generated : {0, 1}) {
    const auto passes = generated == 0 ? cache_plan(arm.arm, prompt, 0)
                                       : next_passes(arm.arm, prompt, generated - 1);
    if (!passes) return passes.error();
    for (const PlanStep& pass : {passes->front(), passes->back()}) {
      const auto explained = arm.engine->explain(pass, arm.launch_of(prompt));
      if (!explained) return explained.error();
    }
  }
  return true;
}

}  // namespace

Result<PreparedRun> PreparedRun::make(const Engine& engine, RunOptions options,
                                      std::vector<RunPrompt> prompts) {
  if (const Result<bool> checked = check_options(options); !checked) return checked.error();
  if (prompts.empty()) return usage("no prompt; accepted: one prompt or more");
  std::set<std::int64_t> numbers;
  for (const RunPrompt& prompt : prompts) {
    if (!numbers.insert(prompt.number).second) {
      return usage(
          fmt::format("two prompts have the number {}; accepted: unequal ones", prompt.number));
    }
    if (const auto checked = check_prompt(prompt, engine, options); !checked) {
      return checked.error();
    }
  }
  PreparedRun run;
  run.record_ = {.version = options.version,
                 .engine = engine.name(),
                 .model = engine.model(),
                 .model_sha256 = engine.model_sha256(),
                 .storage = engine.storage(),
                 .sampling = to_text(options.sampling),
                 .seed = options.sampling.seed,
                 .max_new_tokens = options.max_new_tokens,
                 .teacher_forced = options.teacher_forced,
                 .arms = {}};
  for (const Arm& arm : options.arms) {
    PreparedArm prepared;
    prepared.arm = arm;
    prepared.launch = options.launch;
    std::vector<ArmSetting> settings = arm.settings;
    const std::string front = fmt::format("arm {}", quote(arm.label));
    if (const auto taken = take_launch_settings(settings, prepared); !taken) {
      return with_front(front, taken.error());
    }
    Result<std::unique_ptr<EngineArm>> engine_arm = engine.arm(settings);
    if (!engine_arm) return with_front(front, engine_arm.error());
    prepared.engine = std::move(*engine_arm);
    const auto prompt = std::ssize(prompts.front().ids);
    if (const auto checked = check_kernels(prepared, prompt); !checked) {
      return with_front(front, checked.error());
    }
    run.record_.arms.push_back({arm.label, to_text(arm), prepared.engine->dispatch()});
    run.arms_.push_back(std::move(prepared));
  }
  run.vocabulary_ = engine.vocabulary();
  if (options.stops) run.stop_tokens_ = engine.stop_tokens();
  run.options_ = std::move(options);
  run.prompts_ = std::move(prompts);
  return run;
}

PromptRecord PreparedRun::head_line(std::size_t index) const {
  const RunPrompt& prompt = prompts_[index];
  return {prompt.number, {prompt.ids.begin(), prompt.ids.end()}, record_};
}

Result<RunSummary> PreparedRun::run(const RunOutput& output, std::size_t first) const {
  RunSummary summary;
  summary.exp_bounded.resize(arms_.size());
  if (first >= prompts_.size()) return summary;
  const auto count = static_cast<std::int64_t>(prompts_.size() - first);
  OrderedLines lines(output.line, first);
  FirstError failure;
  Share share(output.progress, count * options_.max_new_tokens);
  std::vector<std::vector<char>> bounded(static_cast<std::size_t>(count));
  parallel_for(count, options_.threads, [&](std::int64_t i) {
    const std::size_t index = first + static_cast<std::size_t>(i);
    if (failure.is_before(index)) return;
    PromptOutput prompt;
    prompt.line = [&](const RecordLine& line) { return lines.add(index, line); };
    prompt.run = &output;
    prompt.is_cancelled = [&] { return failure.is_before(index); };
    prompt.step_done = [&] { share.step_done(); };
    Result<std::vector<char>> done = run_prompt(*this, index, prompt);
    if (!done) return failure.keep(index, done.error());
    bounded[static_cast<std::size_t>(i)] = std::move(*done);
    share.prompt_done((i + 1) * options_.max_new_tokens);
    if (const Result<bool> finished = lines.finish(index); !finished) {
      failure.keep(index, finished.error());
    }
  });
  const std::optional<Error>& error = failure.error();
  if (error) return *error;
  for (const std::vector<char>& of_prompt : bounded) {
    for (std::size_t arm = 0; arm < of_prompt.size(); ++arm) {
      if (of_prompt[arm] != 0) summary.exp_bounded[arm] = true;
    }
  }
  return summary;
}

}  // namespace kvsim
