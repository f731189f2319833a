// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/arm_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "cli/printable.h"
#include "run/launch_settings.h"

namespace kvsim {
namespace {

constexpr std::array pair_rows{
    OptionSpec{"--arm", "ARM",
               "CONSTRUCTOR[:KEY=VALUE,...][@LABEL]; constructors: on (live), off, token-wise, "
               "all-token-wise, one-shot, chunked(c), aligned-chunk(c), prefix-hit(n,b); may be "
               "repeated, the first is the reference (default: on, then off)",
               true},
    OptionSpec{
        "--set", "KEY=VALUE",
        "a setting of every arm that does not set it itself: dispatch=NAME or one line of "
        "it, storage, weights, kv or head=FORMAT, kv-heads=repeated, batch, padding, verify-width "
        "(--explain prints them), rope=torch-cpu for libtorch's factors; of libtorch "
        "attention=eager|sdpa|sdpa-flash|sdpa-math, storage, "
        "threads; may be repeated",
        true},
};

constexpr std::array arm_rows{
    OptionSpec{"--plant", "NAME",
               "one more arm: the first one with this defect, to see how large a bug is; may be "
               "repeated",
               true},
    OptionSpec{"--batch-with", "FILE", "prompts that are computed in the same batch"},
    OptionSpec{"--padding", "SIDE",
               "none (default), left or right: how the batch is filled to its longest prompt"},
    OptionSpec{"--verify-width", "K",
               "rows of each pass that makes one token: it and K - 1 rejected drafts, 1 to 64 "
               "(default 1)"},
    OptionSpec{"--max-new-tokens", "N", "tokens to generate, 1 to 1048576 (default 64)"},
    OptionSpec{"--ignore-eos", "", "go on behind a token that ends the text"},
    OptionSpec{"--teacher-forced", "",
               "feed every arm the first arm's tokens: every step compares arithmetic"},
    OptionSpec{"--temperature", "X", "0 (default): greedy, ties to the lower index"},
    OptionSpec{"--top-k", "N", "sample among the N largest logits (default 0: all)"},
    OptionSpec{"--top-p", "X", "sample among the fewest tokens with this probability (default 1)"},
    OptionSpec{"--seed", "N", "seed of sampling, the same draws for every arm (default 1)"},
};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

/// The settings of --set, sorted by key.
Result<std::vector<ArmSetting>> common_settings(const ParsedOptions& options) {
  // An arm's grammar says what a setting is.
  std::string text = "live";
  for (const std::string& setting : options.values("--set")) {
    text += (text == "live" ? ":" : ",") + setting;
    const Result<Arm> alone = parse_arm("live:" + setting);
    if (!alone || alone->settings.size() != 1 || alone->label != to_text(*alone)) {
      return usage(fmt::format("--set is {}; one KEY=VALUE is accepted", in_quotes(setting)));
    }
  }
  const Result<Arm> arm = parse_arm(text);
  if (!arm) return usage("--set gives one key twice; each key once is accepted");
  return arm->settings;
}

void add_settings(Arm& arm, const std::vector<ArmSetting>& settings) {
  for (const ArmSetting& setting : settings) {
    const auto same_key = [&](const ArmSetting& own) { return own.key == setting.key; };
    if (std::none_of(arm.settings.begin(), arm.settings.end(), same_key)) {
      arm.settings.push_back(setting);
    }
  }
  std::sort(arm.settings.begin(), arm.settings.end(),
            [](const ArmSetting& a, const ArmSetting& b) { return a.key < b.key; });
}

/// The arm with its label as the user wrote the constructor.
Result<Arm> arm_named(const std::string& text) {
  Result<Arm> arm = parse_arm(text);
  if (!arm || arm->label != to_text(*arm) || !text.starts_with("on")) return arm;
  if (arm->label.starts_with("live")) arm->label.replace(0, 4, "on");
  return arm;
}

Result<double> number_option(const ParsedOptions& options, std::string_view name, double fallback) {
  const auto text = options.value(name);
  if (!text) return fallback;
  double value = 0;
  const char* const end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc() && at == end) return value;
  return usage(fmt::format("{} is {}; a decimal number is accepted", name, in_quotes(*text)));
}

Result<Sampling> sampling_from(const ParsedOptions& options) {
  Sampling sampling;
  const auto temperature = number_option(options, "--temperature", sampling.temperature);
  if (!temperature) return temperature.error();
  const auto top_p = number_option(options, "--top-p", sampling.top_p);
  if (!top_p) return top_p.error();
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto top_k = integer_option(options, "--top-k", 0, 0, largest);
  if (!top_k) return top_k.error();
  const auto seed = integer_option(options, "--seed", 1, 0, largest);
  if (!seed) return seed.error();
  sampling = {*temperature, *top_k, *top_p, static_cast<std::uint64_t>(*seed)};
  if (sampling.temperature == 0) {
    for (const std::string_view name : {"--top-k", "--top-p", "--seed"}) {
      if (options.has(name)) {
        return usage(fmt::format("{} is given without --temperature; greedy draws nothing", name));
      }
    }
  }
  if (const auto checked = check_sampling(sampling); !checked) return checked.error();
  return sampling;
}

}  // namespace

std::span<const OptionSpec> pair_option_rows() { return pair_rows; }
std::span<const OptionSpec> arm_option_rows() { return arm_rows; }

Result<std::vector<Arm>> arms_from(const ParsedOptions& options) {
  const auto settings = common_settings(options);
  if (!settings) return settings.error();
  std::vector<std::string> texts = options.values("--arm");
  if (texts.empty()) texts = {"on", "off"};
  std::vector<Arm> arms;
  arms.reserve(texts.size());
  for (const std::string& text : texts) {
    Result<Arm> arm = arm_named(text);
    if (!arm) return arm.error();
    add_settings(*arm, *settings);
    arms.push_back(std::move(*arm));
  }
  for (const std::string& plant : options.values("--plant")) {
    Arm planted = arms.front();
    for (const ArmSetting& setting : planted.settings) {
      if (setting.key == "plant") return usage("--plant is given, and the first arm has one");
    }
    add_settings(planted, {{"plant", plant}});
    planted.label += "+" + plant;
    arms.push_back(std::move(planted));
  }
  return arms;
}

Result<std::array<Arm, 2>> two_arms_from(const ParsedOptions& options) {
  Result<std::vector<Arm>> arms = arms_from(options);
  if (!arms) return arms.error();
  if (arms->size() != 2) {
    return usage(fmt::format("--arm is given {} times; none (on and off) or two are accepted",
                             arms->size()));
  }
  return std::array{std::move((*arms)[0]), std::move((*arms)[1])};
}

Result<RunOptions> run_options_from(const ParsedOptions& options) {
  RunOptions run;
  const auto sampling = sampling_from(options);
  if (!sampling) return sampling.error();
  run.sampling = *sampling;
  const auto tokens = integer_option(options, "--max-new-tokens", 64, 1, std::int64_t{1} << 20);
  if (!tokens) return tokens.error();
  run.max_new_tokens = *tokens;
  const auto width = integer_option(options, "--verify-width", 1, 1, 64);
  if (!width) return width.error();
  run.launch.verify_width = *width;
  if (const auto side = options.value("--padding")) {
    const auto padding = parse_padding("--padding", *side);
    if (!padding) return padding.error();
    if (!options.has("--batch-with")) {
      return usage("--padding is given without --batch-with: there is nothing to fill up to");
    }
    run.launch.padding = *padding;
  }
  run.teacher_forced = options.has("--teacher-forced");
  run.stops = !options.has("--ignore-eos");
  return run;
}

}  // namespace kvsim
