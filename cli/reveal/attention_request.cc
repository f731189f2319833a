// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/reveal/attention_request.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "cli/format_option.h"
#include "cli/printable.h"
#include "cli/reveal/request.h"

namespace kvsim {
namespace {

constexpr std::array<std::string_view, 5> attention_sizes = {"--heads", "--kv-heads", "--head-dim",
                                                             "--kv-len", "--q-len"};
constexpr std::array<std::string_view, 6> sums_only = {"--m",     "--n",          "--k",
                                                       "--batch", "--misaligned", "--same-row"};

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> read_sizes(const ParsedOptions& options, AttentionRevealRequest& request) {
  struct Size {
    std::string_view name;
    std::int64_t* value;
    std::int64_t least;
    std::int64_t most;
  };
  const auto& sweep = request.sweep;
  for (const std::string_view name : {"--head-dim", "--kv-len"}) {
    if (options.has(name) || (sweep && name.substr(2) == sweep->name)) continue;
    return usage(fmt::format("{} is missing; it has no default for sdpa", name));
  }
  AttentionShape& shape = request.layer.shape;
  auto seed = static_cast<std::int64_t>(request.options.seed);
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  for (const Size& size : std::initializer_list<Size>{
           {"--heads", &shape.query_heads, 1, 4096},
           {"--head-dim", &shape.head_dim, 1, 4096},
           {"--kv-len", &shape.kv_len, 1, largest},
           {"--q-len", &shape.query_len, 1, largest},
           {"--threads", &request.threads, 1, 1024},
           {"--outputs", &request.options.least_outputs, 1, std::int64_t{1} << 30},
           {"--most-calls", &request.options.most_calls, 1, std::int64_t{1} << 30},
           {"--seed", &seed, 0, std::int64_t{1} << 62}}) {
    const auto value = integer_option(options, size.name, *size.value, size.least, size.most);
    if (!value) return value.error();
    *size.value = *value;
  }
  request.options.seed = static_cast<std::uint64_t>(seed);
  if (sweep) (sweep->name == "m" ? shape.query_len : shape.kv_len) = sweep->last;
  const auto kv_heads = integer_option(options, "--kv-heads", shape.query_heads, 1, 4096);
  if (!kv_heads) return kv_heads.error();
  shape.kv_heads = *kv_heads;
  if (shape.query_heads % shape.kv_heads == 0) return true;
  return usage(
      fmt::format("--heads {} is no multiple of --kv-heads {}", shape.query_heads, shape.kv_heads));
}

}  // namespace

Result<bool> asks_for_attention(const ParsedOptions& options) {
  const std::string operation = options.value("--op").value_or("linear");
  const bool attention = operation == "sdpa";
  const auto refuse = [&](std::string_view name) {
    return usage(fmt::format("{} is given; --op {} does not take it", name, in_quotes(operation)));
  };
  for (const std::string_view name : sums_only) {
    if (attention && options.has(name)) return refuse(name);
  }
  for (const std::string_view name : attention_sizes) {
    if (!attention && options.has(name)) return refuse(name);
  }
  return attention;
}

Result<AttentionRevealRequest> attention_reveal_request(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return usage(fmt::format("{} is no option; reveal takes nothing else",
                             in_quotes(options.positionals().front())));
  }
  AttentionRevealRequest request;
  const auto format = format_named("--dtype", options.value("--dtype").value_or("fp32"));
  if (!format) return format.error();
  request.layer.format = (*format)->format;
  if (request.layer.format.precision < 8 || request.layer.format.precision > 24) {
    return usage(fmt::format("--dtype {} with sdpa; accepted: fp32, bf16, fp16", (*format)->name));
  }
  constexpr std::array<std::string_view, 2> swept = {"m", "kv-len"};
  auto sweep = sweep_option(options, swept);
  if (!sweep) return sweep.error();
  request.sweep = std::move(*sweep);
  if (const auto done = read_sizes(options, request); !done) return done.error();
  auto attributes = attributes_option(options);
  if (!attributes) return attributes.error();
  request.layer.attributes = std::move(*attributes);
  request.svg = options.value("--svg");
  auto name = save_option(options);
  if (!name) return name.error();
  request.save = std::move(*name);
  auto backend = backend_option(options, request.threads);
  if (!backend) return backend.error();
  request.backend = std::move(*backend);
  return request;
}

}  // namespace kvsim
