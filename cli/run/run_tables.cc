// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/predict/cells.h"
#include "cli/printable.h"

namespace kvsim::run_tables {
namespace {

using prediction_tables::count;
using prediction_tables::counted;
using prediction_tables::figure;
using prediction_tables::left_column;
using prediction_tables::nothing;
using prediction_tables::right_column;

constexpr std::size_t text_width = 64;
constexpr std::int64_t steps_around = 3;

Cell optional_count(const std::optional<std::int64_t>& value) {
  return value ? count(*value) : nothing();
}

/// A divergence; infinity has no digits.
Cell divergence_cell(double value) {
  return std::isfinite(value) ? figure(value) : Cell("inf", json_number(value));
}

Cell mean_cell(const StepMean& mean) {
  return mean.steps == 0 ? nothing() : divergence_cell(mean.mean());
}

/// A margin or a difference of logits, as short as it reads back.
Cell logits_cell(const std::optional<double>& value) {
  return value ? Cell(fmt::format("{:.4g}", *value), json_number(*value)) : nothing();
}

Cell margin_logits(const std::optional<Margin>& margin) {
  return margin ? logits_cell(margin->logits) : nothing();
}

Cell margin_ulps(const std::optional<Margin>& margin) {
  return margin ? Cell(fmt::format("{:.4g}", margin->ulps), json_number(margin->ulps)) : nothing();
}

std::vector<std::int64_t> tokens_of(const std::vector<StepRecord>& steps) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(steps.size());
  for (const StepRecord& step : steps) tokens.push_back(step.token);
  return tokens;
}

std::string launch_text(const Launch& launch, const std::optional<std::int64_t>& batch) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const bool is_filled = !batch && !launch.neighbours.empty();
  if (batch) add(fmt::format("batch of {}", *batch));
  if (is_filled) {
    add(counted(std::ssize(launch.neighbours), "neighbour", "neighbours"));
  }
  if (is_filled && launch.padding == Padding::left) add("padded left");
  if (is_filled && launch.padding == Padding::right) add("padded right");
  if (launch.verify_width > 1) add(fmt::format("{} rows verified", launch.verify_width));
  return text.empty() ? "alone" : text;
}

}  // namespace

std::vector<PairView> pair_views(const std::vector<PromptResult>& prompts) {
  std::vector<PairView> views;
  if (prompts.empty()) return views;
  const std::size_t arms = prompts.front().steps.size();
  views.reserve(arms);
  for (std::size_t arm = 1; arm < arms; ++arm) {
    PairView view;
    view.arm = arm;
    view.prompts.reserve(prompts.size());
    for (const PromptResult& prompt : prompts) view.prompts.push_back(summarize_pair(prompt, arm));
    view.total = total_of(view.prompts);
    views.push_back(std::move(view));
  }
  return views;
}

const std::string& label(const RunRequest& request, std::size_t arm) {
  return request.run.arms()[arm].arm.label;
}

Table settings(const RunRequest& request, const RunSummary& /*summary*/) {
  const RunOptions& options = request.run.options();
  Table table;
  table.show_headings = false;
  table.columns = {left_column("setting", "setting"), left_column("value", "value")};
  const auto add = [&](const char* name, std::string value) {
    table.rows.push_back({Cell(name), Cell(std::move(value))});
  };
  add("model", fmt::format("{} (sha256 {}…)", printable(request.model),
                           request.engine->model_sha256().substr(0, 16)));
  add("engine", request.engine->name());
  add("storage", request.engine->storage());
  add("prompts", request.prompt_source);
  add("tokens",
      fmt::format("at most {} new ones, {}", options.max_new_tokens, to_text(options.sampling)));
  add("fed", options.teacher_forced
                 ? fmt::format("teacher-forced: every arm gets the tokens of {}", label(request, 0))
                 : std::string("free-running: each arm gets its own tokens"));
  if (!request.out.empty()) add("records", printable(request.out));
  return table;
}

Table arms(const RunRequest& request, const RunSummary& summary) {
  Table table;
  table.title = "Arms:";
  table.columns = {left_column("label", "label"), left_column("arm", "arm"),
                   left_column("dispatch", "dispatch"), left_column("launch", "launch"),
                   left_column("exp", "exp")};
  for (std::size_t i = 0; i < request.run.arms().size(); ++i) {
    const PreparedArm& arm = request.run.arms()[i];
    table.rows.push_back({arm.arm.label, to_text(arm.arm), arm.engine->dispatch(),
                          launch_text(arm.launch, arm.batch),
                          summary.exp_bounded[i] ? "bounded" : "exact"});
  }
  return table;
}

Table texts(const RunRequest& request, const std::vector<PromptResult>& prompts) {
  Table table;
  table.title = "What each arm wrote:";
  table.columns = {right_column("prompt", "prompt"), left_column("arm", "arm"),
                   right_column("tokens", "tokens"), left_column("text", "text")};
  for (const PromptResult& prompt : prompts) {
    std::vector<std::vector<std::int64_t>> seen;
    for (std::size_t arm = 0; arm < prompt.steps.size(); ++arm) {
      std::vector<std::int64_t> tokens = tokens_of(prompt.steps[arm]);
      const bool is_same = arm > 0 && tokens == seen.front();
      table.rows.push_back({count(prompt.head.prompt), label(request, arm),
                            count(std::ssize(tokens)),
                            is_same ? Cell("the same", request.text.all(tokens, text_width))
                                    : Cell(request.text.all(tokens, text_width))});
      seen.push_back(std::move(tokens));
    }
  }
  return table;
}

Table differences(const RunRequest& request, const std::vector<PromptResult>& prompts,
                  const PairView& pair) {
  const bool forced = request.run.options().teacher_forced;
  Table table;
  table.title = fmt::format("{} against {}, prompt by prompt; steps after equal tokens only:",
                            label(request, 0), label(request, pair.arm));
  table.columns = {right_column("prompt", "prompt"),
                   right_column("steps", "steps"),
                   right_column("equal_steps", "bit-equal"),
                   right_column("first_logits", "logits from"),
                   right_column("largest_logit_difference", "max |dlogit|"),
                   right_column("mean_kl", "mean KL"),
                   right_column("largest_kl", "max KL"),
                   right_column("largest_js", "max JS"),
                   right_column("flip", "flip at"),
                   right_column("first_margin", "margin"),
                   right_column("first_margin_ulps", "margin", "ulp"),
                   right_column("second_margin", "other's"),
                   right_column("top_two_error", "top-2 error")};
  table.columns.push_back(forced ? right_column("token_changes", "changes")
                                 : right_column("mean_kl_after", "KL after"));
  for (std::size_t i = 0; i < pair.prompts.size(); ++i) {
    const PairSummary& summary = pair.prompts[i];
    const ChosenOtherwise flip = summary.flip.value_or(ChosenOtherwise{});
    table.rows.push_back({count(prompts[i].head.prompt), count(summary.steps),
                          count(summary.equal_steps), optional_count(summary.first_logits),
                          figure(summary.largest_logit_difference), mean_cell(summary.kl),
                          divergence_cell(summary.largest_kl), figure(summary.largest_js),
                          summary.flip ? count(flip.step) : nothing(),
                          margin_logits(flip.first_margin), margin_ulps(flip.first_margin),
                          margin_logits(flip.second_margin), logits_cell(flip.top_two_error),
                          forced ? count(summary.token_changes) : mean_cell(summary.kl_after)});
  }
  return table;
}

Table totals(const RunRequest& request, const std::vector<PairView>& pairs) {
  Table table;
  table.title =
      fmt::format("All prompts, {} against each other arm; KL and JS in nats:", label(request, 0));
  table.columns = {left_column("arm", "arm"),
                   right_column("prompts", "prompts"),
                   right_column("prompts_with_difference", "with other logits"),
                   right_column("prompts_with_flip", "with a flip"),
                   right_column("steps", "steps"),
                   right_column("equal_steps", "bit-equal"),
                   right_column("token_changes", "token changes"),
                   right_column("largest_logit_difference", "max |dlogit|"),
                   right_column("mean_kl", "mean KL"),
                   right_column("largest_kl", "max KL"),
                   right_column("largest_js", "max JS"),
                   right_column("mean_kl_after", "KL after a flip")};
  for (const PairView& pair : pairs) {
    const PairSummary& sum = pair.total.sum;
    table.rows.push_back(
        {label(request, pair.arm), count(pair.total.prompts),
         count(pair.total.prompts_with_difference), count(pair.total.prompts_with_flip),
         count(sum.steps), count(sum.equal_steps), count(sum.token_changes),
         figure(sum.largest_logit_difference), mean_cell(sum.kl), divergence_cell(sum.largest_kl),
         figure(sum.largest_js), mean_cell(sum.kl_after)});
  }
  table.notes.emplace_back(
      "every column but the last is of steps before which both arms were fed the same tokens");
  return table;
}

Table around_flip(const RunRequest& request, const PromptResult& prompt, const PairView& pair,
                  const ChosenOtherwise& flip) {
  Table table;
  table.title =
      fmt::format("Prompt {}: tokens around step {}, where {} and {} part:", prompt.head.prompt,
                  flip.step, label(request, 0), label(request, pair.arm));
  table.columns = {right_column("step", "step"), left_column("first", label(request, 0)),
                   left_column("second", label(request, pair.arm)), left_column("mark", "")};
  const auto& first = prompt.steps.front();
  const auto& second = prompt.steps[pair.arm];
  const std::int64_t end =
      std::min(flip.step + steps_around + 1, std::max(std::ssize(first), std::ssize(second)));
  for (std::int64_t step = std::max<std::int64_t>(0, flip.step - steps_around); step < end;
       ++step) {
    const auto cell = [&](const std::vector<StepRecord>& steps) {
      if (step >= std::ssize(steps)) return Cell("(ended)", Json());
      const std::int64_t token = steps[static_cast<std::size_t>(step)].token;
      return Cell(request.text.one(token), Json(token));
    };
    table.rows.push_back({count(step), cell(first), cell(second),
                          step == flip.step ? Cell("<- flip", Json(true)) : Cell("", Json(false))});
  }
  return table;
}

std::string_view difference_name(const RunRequest& request, std::size_t arm) {
  const EngineArm& first = *request.run.arms()[0].engine;
  const EngineArm& other = *request.run.arms()[arm].engine;
  const bool is_same =
      first.dispatch() == other.dispatch() && first.difference() == other.difference();
  return is_same ? first.difference() : std::string_view();
}

std::string meaning(const RunRequest& request, const std::vector<PairView>& pairs) {
  if (pairs.empty()) {
    return fmt::format("One arm, {}: there is nothing to compare it with.", label(request, 0));
  }
  std::string text;
  for (const PairView& pair : pairs) {
    const PairTotal& total = pair.total;
    const PairSummary& sum = total.sum;
    if (!text.empty()) text += ' ';
    const std::string names = fmt::format("{} and {}", label(request, 0), label(request, pair.arm));
    if (sum.steps == sum.equal_steps) {
      text += fmt::format("{} computed the same logits, bit for bit, at all {} steps.", names,
                          sum.steps);
      continue;
    }
    text += fmt::format(
        "{} computed other logits at {} of {} steps that followed the same tokens, at most {:.3g} "
        "apart (KL at most {})",
        names, sum.steps - sum.equal_steps, sum.steps, sum.largest_logit_difference,
        divergence_cell(sum.largest_kl).text);
    if (const std::string_view name = difference_name(request, pair.arm); !name.empty()) {
      text += fmt::format(", which is {}", name);
    }
    if (total.prompts_with_flip == 0) {
      text += ", and always chose the same token.";
      continue;
    }
    double widest = 0;
    for (const PairSummary& prompt : pair.prompts) {
      if (prompt.flip && prompt.flip->first_margin) {
        widest = std::max(widest, prompt.flip->first_margin->logits);
      }
    }
    text += fmt::format(
        "; in {} of {} prompts another token was chosen, where the two largest logits were at "
        "most {:.3g} apart.",
        total.prompts_with_flip, total.prompts, widest);
  }
  return text;
}

Table shortened(Table table, std::size_t rows) {
  if (table.rows.size() <= rows) return table;
  table.notes.push_back(
      fmt::format("{} more rows: --json and --out have them", table.rows.size() - rows));
  table.rows.erase(table.rows.begin() + static_cast<std::ptrdiff_t>(rows), table.rows.end());
  return table;
}

}  // namespace kvsim::run_tables
