// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "cli/replay/settings.h"
#include "sim/attention/kernel.h"
#include "sim/dispatch.h"
#include "sim/predict/kernel_choice.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

constexpr std::int64_t runs_of_a_search = 4096;
constexpr std::int64_t most_runs = std::int64_t{1} << 40;

Result<bool> take_sum(const ParsedOptions& options, fuzz::CaseShape& shape) {
  shape.kind = fuzz::CaseKind::sum;
  for (const std::string_view name :
       {"--head-dim", "--gqa", "--kv-heads", "--kv-len", "--device", "--on-splits", "--off-splits",
        "--on-head", "--off-head", "--alone"}) {
    if (!options.has(name)) continue;
    return Error{ErrorKind::usage,
                 fmt::format("{} is of attention; with --terms the two sums are --on ORDER and "
                             "--off ORDER",
                             name)};
  }
  const auto terms = integer_option(options, "--terms", 1, 1, fuzz::most_case_size);
  if (!terms) return terms.error();
  shape.terms = *terms;
  const auto accumulator = format_option(options, "--accumulate", softfloat::binary32);
  if (!accumulator) return accumulator.error();
  shape.accumulator = *accumulator;
  const auto product = parse_product(options.value("--product").value_or("rounded"));
  if (!product) return product.error();
  shape.product = *product;
  constexpr std::array<std::string_view, 2> names{"--on", "--off"};
  constexpr std::array<std::string_view, 2> defaults{"sequential", "pairwise"};
  for (const std::size_t path : {fuzz::path_on, fuzz::path_off}) {
    const std::string text = options.value(names[path]).value_or(std::string(defaults[path]));
    auto order = parse_order(text);
    if (!order) {
      return Error{ErrorKind::usage, fmt::format("{}: {}", names[path], order.error().message)};
    }
    shape.orders[path] = std::move(*order);
  }
  return true;
}

Result<bool> take_sizes(const ParsedOptions& options, AttentionShape& sizes) {
  const auto head_dim = integer_option(options, "--head-dim", 64, 1, fuzz::most_case_size);
  if (!head_dim) return head_dim.error();
  const auto group = integer_option(options, "--gqa", 1, 1, 1024);
  if (!group) return group.error();
  const auto kv_heads = integer_option(options, "--kv-heads", 1, 1, 1024);
  if (!kv_heads) return kv_heads.error();
  const auto kv_len = integer_option(options, "--kv-len", 1024, 1, fuzz::most_case_size);
  if (!kv_len) return kv_len.error();
  sizes = {.query_heads = *group * *kv_heads,
           .kv_heads = *kv_heads,
           .query_len = 1,
           .kv_len = *kv_len,
           .head_dim = *head_dim};
  return true;
}

Result<bool> take_attention(const ParsedOptions& options, fuzz::CaseShape& shape) {
  shape.kind = fuzz::CaseKind::attention;
  for (const std::string_view name : {"--accumulate", "--product"}) {
    if (!options.has(name)) continue;
    return Error{ErrorKind::usage, fmt::format("{} is of sums: --terms K is needed", name)};
  }
  Result<bool> done = take_sizes(options, shape.attention);
  if (!done) return done;
  const auto dispatch = find_dispatch(options.value("--device").value_or("h100"));
  if (!dispatch) return dispatch.error();
  const auto kernels = choose_kernels(**dispatch, options.value("--on").value_or("decode"),
                                      options.value("--off").value_or("prefill"));
  if (!kernels) return kernels.error();
  const std::int64_t many = std::max<std::int64_t>(2, shape.attention.kv_len);
  shape.kernels[fuzz::path_on].kernel = kernels->attention(1).name;
  shape.kernels[fuzz::path_off].kernel = kernels->attention(many).name;
  shape.kernels[fuzz::path_off].prefill = !options.has("--alone");
  constexpr std::array<std::string_view, 2> names{"--on-splits", "--off-splits"};
  constexpr std::array<std::string_view, 2> heads{"--on-head", "--off-head"};
  for (const std::size_t path : {fuzz::path_on, fuzz::path_off}) {
    const auto splits = integer_option(options, names[path], 0, 0, 4096);
    if (!splits) return splits.error();
    shape.kernels[path].splits = *splits;
    const std::string head = options.value(heads[path]).value_or("");
    const bool chosen = head == "decode" || head == "prefill";
    shape.kernels[path].head =
        chosen ? std::string(kernels->linear(head == "decode" ? 1 : many).name) : head;
  }
  return true;
}

/// "60s", "60" or "2m": seconds.
Result<std::int64_t> parse_time(std::string_view text) {
  std::string_view number = text;
  std::int64_t unit = 1;
  if (number.ends_with('s') || number.ends_with('m')) {
    unit = number.back() == 'm' ? 60 : 1;
    number.remove_suffix(1);
  }
  const auto value = parse_integer("--time", number, 1, 1'000'000);
  if (value) return *value * unit;
  return Error{ErrorKind::usage,
               fmt::format("--time {}: seconds or minutes, such as 60s or 2m, are accepted",
                           in_quotes(text))};
}

}  // namespace

Result<SearchLimits> search_limits(const ParsedOptions& options, std::int64_t runs_unless_told) {
  SearchLimits limits;
  const auto seed =
      integer_option(options, "--seed", 0, 0, std::numeric_limits<std::int64_t>::max());
  if (!seed) return seed.error();
  limits.seed = static_cast<std::uint64_t>(*seed);
  const auto islands = integer_option(options, "--islands", 8, 1, 1024);
  if (!islands) return islands.error();
  limits.islands = *islands;
  const auto engine = engine_options(options);
  if (!engine) return engine.error();
  limits.threads = engine->threads;
  if (const auto time = options.value("--time")) {
    const auto seconds = parse_time(*time);
    if (!seconds) return seconds.error();
    limits.seconds = *seconds;
  }
  const auto runs = integer_option(options, "--runs", limits.seconds ? most_runs : runs_unless_told,
                                   1, most_runs);
  if (!runs) return runs.error();
  limits.runs = *runs;
  limits.state = options.value("--state");
  limits.corpus = options.value("--corpus");
  return limits;
}

Result<FlipRequest> flip_request(const ParsedOptions& options) {
  FlipRequest request;
  const auto storage = format_option(options, "--format", softfloat::binary16);
  if (!storage) return storage.error();
  request.shape.storage = *storage;
  const Result<bool> done = options.has("--terms") ? take_sum(options, request.shape)
                                                   : take_attention(options, request.shape);
  if (!done) return done.error();
  const std::string target = options.value("--target").value_or("flip");
  const auto known = fuzz::find_target(target);
  if (!known) return unknown_word("--target", target, fuzz::target_names);
  request.shape.target = *known;
  request.ranges = fuzz::default_ranges();
  if (const auto range = options.value("--range")) {
    auto measured = fuzz::captured_ranges(*range);
    if (!measured) {
      return Error{measured.error().kind, fmt::format("--range: {}", measured.error().message)};
    }
    request.ranges = std::move(*measured);
  }
  request.ranges.subnormals = options.has("--subnormals");
  Result<SearchLimits> limits = search_limits(options, runs_of_a_search);
  if (!limits) return limits.error();
  request.limits = std::move(*limits);
  return request;
}

}  // namespace kvsim
