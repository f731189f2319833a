// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/attention_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "cli/replay/settings.h"

namespace kvsim {
namespace {

constexpr std::int64_t max_length = std::int64_t{1} << 30;
constexpr std::int64_t max_sequences = 1 << 16;

/// One list of --kv-lens.
Result<BatchLengths> parse_lengths(std::string_view text, std::int64_t queries, std::int64_t keys) {
  BatchLengths out;
  std::string_view rest = text;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const Result<std::int64_t> length =
        parse_integer("a length of --kv-lens", rest.substr(0, comma), 1, max_length);
    if (!length) return length.error();
    out.kv_lens.push_back(*length);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  const auto count = static_cast<std::int64_t>(out.kv_lens.size());
  if (keys % count != 0 || queries % count != 0) {
    return Error{
        ErrorKind::usage,
        fmt::format("--kv-lens has {} lengths and the file {} queries and {} keys a head; a "
                    "number that divides both is accepted",
                    count, queries, keys)};
  }
  const std::int64_t longest = *std::ranges::max_element(out.kv_lens);
  if (longest > keys / count) {
    return Error{ErrorKind::usage,
                 fmt::format("--kv-lens has the length {} and each of {} sequences has {} keys in "
                             "the file; at most that is accepted",
                             longest, count, keys / count)};
  }
  out.text = fmt::format("{}", fmt::join(out.kv_lens, ","));
  return out;
}

std::optional<Error> read_batches(const ParsedOptions& options, std::int64_t queries,
                                  std::int64_t keys, AttentionSettings& out) {
  for (const std::string& text : options.values("--kv-lens")) {
    Result<BatchLengths> lengths = parse_lengths(text, queries, keys);
    if (!lengths) return lengths.error();
    if (!out.batches.empty() && out.batches.front().kv_lens.size() != lengths->kv_lens.size()) {
      return Error{ErrorKind::usage,
                   fmt::format("--kv-lens is given with {} and with {} lengths; lists of one "
                               "length are accepted",
                               out.batches.front().kv_lens.size(), lengths->kv_lens.size())};
    }
    for (const BatchLengths& other : out.batches) {
      if (other.text == lengths->text) {
        return Error{ErrorKind::usage,
                     fmt::format("--kv-lens {} is given twice; different lists are accepted",
                                 printable(lengths->text))};
      }
    }
    out.batches.push_back(std::move(*lengths));
  }
  out.has_lengths = !out.batches.empty();
  if (out.batches.empty()) out.batches.push_back({fmt::format("{}", keys), {keys}});
  const auto count = static_cast<std::int64_t>(out.batches.front().kv_lens.size());
  const Result<std::int64_t> batch =
      integer_option(options, "--batch", count, count, max_sequences);
  if (!batch) return batch.error();
  out.batch = *batch;
  return std::nullopt;
}

std::optional<Error> read_mask(const ParsedOptions& options, AttentionMask& mask) {
  if (options.has("--causal") && options.has("--no-causal")) {
    return Error{ErrorKind::usage,
                 "--causal and --no-causal are both given; one of them is accepted"};
  }
  mask.causal = !options.has("--no-causal");
  const Result<std::int64_t> window = integer_option(options, "--window", 0, 0, max_length);
  if (!window) return window.error();
  mask.window = *window;
  const Result<std::optional<float>> cap =
      float_option(options, "--soft-cap", 0, std::numeric_limits<float>::max());
  if (!cap) return cap.error();
  mask.soft_cap = cap->value_or(0);
  return std::nullopt;
}

std::optional<Error> read_launch(const ParsedOptions& options, AttentionSettings& out) {
  struct Number {
    std::string_view option;
    std::int64_t* value;
    std::int64_t lowest;
    std::int64_t highest;
  };
  AttentionLaunch& launch = out.launch;
  const std::array numbers{
      Number{"--splits", &launch.splits, 0, 4096},
      Number{"--split-size", &launch.split_size, 0, max_length},
      Number{"--multiprocessors", &launch.multiprocessors, 0, 4096},
      Number{"--page-size", &launch.page_size, 1, 4096},
      Number{"--cpu-threads", &launch.cpu_threads, 1, 4096},
  };
  for (const Number& number : numbers) {
    const Result<std::int64_t> value =
        integer_option(options, number.option, *number.value, number.lowest, number.highest);
    if (!value) return value.error();
    *number.value = *value;
  }
  launch.paged = options.has("--paged");
  if (launch.splits != 0 && launch.split_size != 0) {
    return Error{ErrorKind::usage,
                 "--splits and --split-size are both given; one of them is accepted"};
  }
  if (const auto text = options.value("--split-by")) {
    constexpr std::array<std::string_view, 2> names{"batch", "sequence"};
    if (*text != names[0] && *text != names[1]) return unknown_word("--split-by", *text, names);
    out.split_by = *text == names[1] ? SplitBy::sequence : SplitBy::batch;
  }
  return std::nullopt;
}

}  // namespace

Result<AttentionSettings> attention_settings(const ParsedOptions& options, std::int64_t queries,
                                             std::int64_t keys) {
  AttentionSettings out;
  if (const auto error = read_mask(options, out.mask)) return *error;
  const Result<std::optional<float>> scale = float_option(
      options, "--scale", std::numeric_limits<float>::min(), std::numeric_limits<float>::max());
  if (!scale) return scale.error();
  out.scale = scale->value_or(0);
  if (const auto error = read_launch(options, out)) return *error;
  if (const auto error = read_batches(options, queries, keys, out)) return *error;
  return out;
}

AttentionLaunch launch_of(const AttentionSettings& settings, const BatchLengths& lengths) {
  AttentionLaunch launch = settings.launch;
  if (settings.split_by == SplitBy::sequence) return launch;  // alone: batch 1, its own length
  launch.batch = settings.batch;
  launch.longest_kv_len = *std::ranges::max_element(lengths.kv_lens);
  if (settings.has_lengths) launch.kv_lens = lengths.kv_lens;
  return launch;
}

Json settings_json(const AttentionSettings& settings) {
  Json out = Json::object();
  out["causal"] = settings.mask.causal;
  out["window"] = settings.mask.window;
  out["soft_cap"] = json_number(static_cast<double>(settings.mask.soft_cap));
  out["scale"] = settings.scale == 0 ? Json() : json_number(static_cast<double>(settings.scale));
  out["kv_lens"] = Json::array();
  for (const BatchLengths& lengths : settings.batches) out["kv_lens"].push_back(lengths.kv_lens);
  out["batch"] = settings.batch;
  out["split_by"] = settings.split_by == SplitBy::batch ? "batch" : "sequence";
  out["splits"] = settings.launch.splits;
  out["split_size"] = settings.launch.split_size;
  out["multiprocessors"] = settings.launch.multiprocessors;
  out["paged"] = settings.launch.paged;
  out["page_size"] = settings.launch.page_size;
  out["cpu_threads"] = settings.launch.cpu_threads;
  return out;
}

std::string mask_text(const AttentionMask& mask) {
  std::string text = mask.causal ? "causal" : "every key";
  if (mask.window > 0) text += fmt::format(", window {}", mask.window);
  if (mask.soft_cap > 0) text += fmt::format(", soft cap {}", mask.soft_cap);
  return text;
}

std::string launch_text(const AttentionSettings& settings) {
  std::string text;
  for (const BatchLengths& lengths : settings.batches) {
    text += fmt::format("{}{}", text.empty() ? "" : " or ", lengths.text);
  }
  text += fmt::format(" keys, {} sequence{} in the launch", settings.batch,
                      settings.batch == 1 ? "" : "s");
  const AttentionLaunch& launch = settings.launch;
  if (launch.splits > 0) text += fmt::format(", {} splits", launch.splits);
  if (launch.split_size > 0) text += fmt::format(", splits of {} keys", launch.split_size);
  if (settings.split_by == SplitBy::sequence) text += ", splits chosen for each sequence alone";
  if (launch.multiprocessors > 0) {
    text += fmt::format(", {} multiprocessors", launch.multiprocessors);
  }
  if (launch.paged) text += fmt::format(", pages of {} keys", launch.page_size);
  if (launch.cpu_threads > 1) text += fmt::format(", {} threads", launch.cpu_threads);
  return text;
}

}  // namespace kvsim
