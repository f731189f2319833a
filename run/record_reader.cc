// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "model/mapped_file.h"
#include "model/quote.h"
#include "run/record_fields.h"

namespace kvsim {
namespace {

constexpr std::size_t many = std::size_t{1} << 18;  // the tree holds no more values than that

RecordRun read_run(const RecordField& field) {
  RecordRun run;
  if (!field.is_object_of({"version", "engine", "model", "model_sha256", "storage", "sampling",
                           "seed", "max_new_tokens", "teacher_forced", "arms"})) {
    return run;
  }
  run.version = field.at("version").text();
  run.engine = field.at("engine").text();
  run.model = field.at("model").text();
  run.model_sha256 = field.at("model_sha256").text();
  run.storage = field.at("storage").text();
  run.sampling = field.at("sampling").text();
  run.seed = field.at("seed").unsigned_number();
  run.max_new_tokens = field.at("max_new_tokens").whole_number();
  run.teacher_forced = field.at("teacher_forced").boolean();
  for (const RecordField& arm : field.at("arms").elements(many)) {
    if (!arm.is_object_of({"label", "arm", "dispatch"})) break;
    run.arms.push_back({arm.at("label").text(), arm.at("arm").text(), arm.at("dispatch").text()});
  }
  return run;
}

PromptRecord read_prompt(const RecordField& line) {
  PromptRecord record;
  if (!line.is_object_of({"schema", "kind", "prompt", "prompt_ids", "run"})) return record;
  record.prompt = line.at("prompt").whole_number();
  for (const RecordField& id : line.at("prompt_ids").elements(many)) {
    record.prompt_ids.push_back(id.whole_number());
  }
  record.run = read_run(line.at("run"));
  return record;
}

std::vector<RecordTop> read_top(const RecordField& field) {
  std::vector<RecordTop> top;
  for (const RecordField& entry : field.elements(RecordLimits::top)) {
    if (!entry.is_object_of({"id", "logit", "logprob"})) break;
    top.push_back(
        {entry.at("id").whole_number(), entry.at("logit").number(), entry.at("logprob").number()});
  }
  return top;
}

RecordDigests read_digests(const RecordField& field) {
  RecordDigests digests;
  if (!field.is_object_of({"state", "layer", "route", "token"})) return digests;
  for (const RecordField& entry : field.at("state").elements(many)) {
    if (!entry.is_object_of({"layer", "operation", "head", "position", "digest"})) break;
    digests.state.push_back({entry.at("layer").whole_number(), entry.at("operation").text(),
                             entry.at("head").whole_number(), entry.at("position").whole_number(),
                             entry.at("digest").text()});
  }
  digests.layer = field.at("layer").texts(many);
  digests.route = field.at("route").texts(many);
  digests.token = field.at("token").text();
  return digests;
}

StepRecord read_step(const RecordField& line) {
  StepRecord record;
  if (!line.is_object_of({"schema", "kind", "prompt", "arm", "step", "token", "logprob", "top",
                          "margin", "digests", "cost"})) {
    return record;
  }
  record.prompt = line.at("prompt").whole_number();
  record.arm = line.at("arm").text();
  record.step = line.at("step").whole_number();
  record.token = line.at("token").whole_number();
  record.logprob = line.at("logprob").number();
  record.top = read_top(line.at("top"));
  if (const RecordField margin = line.at("margin");
      !margin.is_null() && margin.is_object_of({"logits", "ulps"})) {
    record.margin = Margin{margin.at("logits").number(), margin.at("ulps").number()};
  }
  record.digests = read_digests(line.at("digests"));
  if (const RecordField cost = line.at("cost"); cost.is_object_of({"multiply_adds"})) {
    record.cost = {cost.at("multiply_adds").whole_number()};
  }
  return record;
}

std::optional<double> read_optional(const RecordField& field) {
  if (field.is_null()) return std::nullopt;
  return field.number();
}

ComparisonRecord read_comparison(const RecordField& line) {
  ComparisonRecord record;
  if (!line.is_object_of({"schema", "kind", "prompt", "first", "second", "step", "same_context",
                          "kl", "js", "largest_logit_difference", "differing_logits",
                          "top_two_error"})) {
    return record;
  }
  record.prompt = line.at("prompt").whole_number();
  record.first = line.at("first").text();
  record.second = line.at("second").text();
  record.step = line.at("step").whole_number();
  record.same_context = line.at("same_context").boolean();
  record.kl = read_optional(line.at("kl"));
  record.js = line.at("js").number();
  record.largest_logit_difference = line.at("largest_logit_difference").number();
  record.differing_logits = line.at("differing_logits").whole_number();
  record.top_two_error = read_optional(line.at("top_two_error"));
  return record;
}

/// Checks how lines belong together while it collects them.
class Collector {
 public:
  /// What is wrong with the line, or nothing.
  std::string add(RecordLine line) {
    if (auto* prompt = std::get_if<PromptRecord>(&line)) return add_prompt(std::move(*prompt));
    if (auto* step = std::get_if<StepRecord>(&line)) return add_step(std::move(*step));
    return add_comparison(std::move(std::get<ComparisonRecord>(line)));
  }
  Records records;

 private:
  std::string add_prompt(PromptRecord prompt) {
    if (!heads_.emplace(prompt.prompt, records.prompts.size()).second) {
      return fmt::format("prompt: {} stands twice; accepted: one head line for each prompt",
                         prompt.prompt);
    }
    records.prompts.push_back(std::move(prompt));
    return {};
  }
  /// What is wrong with an arm of a prompt's line, or nothing.
  [[nodiscard]] std::string check_arm(std::int64_t prompt, std::string_view field,
                                      const std::string& label) const {
    const auto head = heads_.find(prompt);
    if (head == heads_.end()) {
      return fmt::format("prompt: {} has no head line before; accepted: steps of known prompts",
                         prompt);
    }
    const std::vector<RecordArm>& arms = records.prompts[head->second].run.arms;
    const auto known = [&](const RecordArm& arm) { return arm.label == label; };
    if (std::any_of(arms.begin(), arms.end(), known)) return {};
    return fmt::format("{}: {}; accepted: the labels of the prompt's head line", field,
                       quote(label));
  }
  std::string add_step(StepRecord step) {
    if (std::string problem = check_arm(step.prompt, "arm", step.arm); !problem.empty()) {
      return problem;
    }
    std::int64_t& next = next_step_[{step.prompt, step.arm}];
    if (step.step != next) {
      return fmt::format("step: {}; accepted: {}, the next one of its arm", step.step, next);
    }
    ++next;
    records.steps.push_back(std::move(step));
    return {};
  }
  std::string add_comparison(ComparisonRecord comparison) {
    for (const auto& [field, label] :
         {std::pair{"first", &comparison.first}, std::pair{"second", &comparison.second}}) {
      if (std::string problem = check_arm(comparison.prompt, field, *label); !problem.empty()) {
        return problem;
      }
    }
    std::int64_t& next = next_comparison_[{comparison.prompt, comparison.first, comparison.second}];
    if (comparison.step != next) {
      return fmt::format("step: {}; accepted: {}, the next one of these arms", comparison.step,
                         next);
    }
    ++next;
    records.comparisons.push_back(std::move(comparison));
    return {};
  }

  std::map<std::int64_t, std::size_t> heads_;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> next_step_;
  std::map<std::tuple<std::int64_t, std::string, std::string>, std::int64_t> next_comparison_;
};

}  // namespace

Result<RecordLine> parse_record_line(std::string_view line) {
  const auto fail = [](std::string problem) { return Error{ErrorKind::file, std::move(problem)}; };
  if (line.size() > RecordLimits::line_bytes) {
    return fail(
        fmt::format("{} bytes; accepted: at most {}", line.size(), RecordLimits::line_bytes));
  }
  std::string problem;
  const nlohmann::json object = read_record_object(line, problem);
  if (!problem.empty()) return fail(std::move(problem));
  const RecordField root(&object, "", &problem);
  const RecordField schema = root.at("schema");
  if (schema.text() != record_schema) schema.refuse(quote(record_schema));
  const RecordField kind_field = root.at("kind");
  const std::string kind = kind_field.text();
  RecordLine record;
  if (kind == "prompt") {
    record = read_prompt(root);
  } else if (kind == "step") {
    record = read_step(root);
  } else if (kind == "comparison") {
    record = read_comparison(root);
  } else {
    kind_field.refuse("\"prompt\", \"step\", \"comparison\"");
  }
  if (!problem.empty()) return fail(std::move(problem));
  return record;
}

Result<Records> parse_records(std::string_view text, std::string_view source) {
  Collector collector;
  std::size_t number = 0;
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    ++number;
    const auto fail = [&](std::string_view problem) {
      return Error{ErrorKind::file, fmt::format("{}: line {}: {}", source, number, problem)};
    };
    Result<RecordLine> line = parse_record_line(text.substr(0, end));
    if (!line) return fail(line.error().message);
    if (const std::string problem = collector.add(std::move(*line)); !problem.empty()) {
      return fail(problem);
    }
    text.remove_prefix(end + 1);
  }
  if (number == 0) {
    return Error{ErrorKind::file,
                 fmt::format("{}: no whole line; accepted: lines of {}", source, record_schema)};
  }
  collector.records.torn_bytes = text.size();
  return std::move(collector.records);
}

Result<Records> read_records(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > RecordLimits::file_bytes) {
    return Error{ErrorKind::file,
                 fmt::format("{}: {} bytes; accepted: at most {}", quote_path(path), bytes.size(),
                             RecordLimits::file_bytes)};
  }
  return parse_records({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                       quote_path(path));
}

}  // namespace kvsim
