// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/attention_inputs.h"
#include "cli/command.h"
#include "cli/format_option.h"
#include "cli/order_study_report.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "sim/engine/simd_level.h"
#include "sim/order.h"
#include "sim/predict/orders.h"
#include "sim/sum.h"

namespace kvsim {
namespace {

constexpr std::int64_t max_threads = 1024;

constexpr std::array predict_options{
    OptionSpec{"--head-dim", "N", "elements of one head, 1 to 65536 (needed without --tensors)"},
    OptionSpec{"--gqa", "R",
               "query heads that read one K/V head, 1 to 4096 (default heads / kv-heads, or 1)"},
    OptionSpec{"--kv-heads", "N", "K/V heads, 1 to 4096 (default 2)"},
    OptionSpec{"--heads", "N",
               "query heads; with --gqa it must equal gqa × kv-heads (default: that)"},
    OptionSpec{"--kv-len", "N", "keys in the cache, 1 to 1048576 (default 512)"},
    OptionSpec{"--query-len", "N",
               "queries, 1 to kv-len (default 1: decoding); query i sees keys 0 to kv-len - "
               "query-len + i"},
    OptionSpec{"--format", "NAME", "storage format of q, k, v and what is rounded (default fp16)"},
    OptionSpec{"--accumulate", "NAME", "format of sums, scale and softmax (default fp32)"},
    OptionSpec{"--product", "NAME",
               "rounded (default: each product to the accumulator's format), fused or exact"},
    OptionSpec{"--order", "ORDER",
               "order of all three sums; may be repeated (default: a set of kernels' orders)",
               true},
    OptionSpec{"--order-qk", "ORDER", "order of q·k over head_dim, in place of --order"},
    OptionSpec{"--order-sum", "ORDER", "order of the softmax's row sum, in place of --order"},
    OptionSpec{"--order-pv", "ORDER", "order of P·V over the keys, in place of --order"},
    OptionSpec{"--round", "LIST",
               "what is rounded to storage: scores, p, out, separated by commas, or none (default "
               "scores,p,out)"},
    OptionSpec{"--input", "NAME",
               "synthetic values: gaussian (default) or outliers (a few large K channels, as real "
               "keys have)"},
    OptionSpec{"--seed", "N", "seed of the synthetic values, 0 to 9223372036854775807 (default 1)"},
    OptionSpec{"--tensors", "FILE",
               "real values from a safetensors file: q [query_heads, query_len, head_dim], k and v "
               "[kv_heads, kv_len, head_dim]"},
    OptionSpec{"--threads", "N",
               "threads, 1 to 1024 (default: one for each CPU); never changes a result"},
};

Result<Order> order_of(std::string_view option, std::string_view text) {
  Result<Order> order = parse_order(text);
  if (!order) {
    return Error{order.error().kind, fmt::format("{}: {}", option, order.error().message)};
  }
  return order;
}

Result<std::vector<OrderedVariant>> variants_from(const ParsedOptions& options) {
  std::vector<OrderedVariant> variants;
  for (const std::string& text : options.values("--order")) {
    const Result<Order> order = order_of("--order", text);
    if (!order) return order.error();
    OrderedVariant variant{to_string(*order), {*order, *order, *order}};
    for (const OrderedVariant& other : variants) {
      if (other.name == variant.name) {
        return Error{ErrorKind::usage,
                     fmt::format("--order {} is given twice; different orders are accepted",
                                 printable(variant.name))};
      }
    }
    variants.push_back(std::move(variant));
  }
  if (variants.empty()) variants = default_variants();
  constexpr std::array<std::pair<std::string_view, Order AttentionOrders::*>, 3> parts{{
      {"--order-qk", &AttentionOrders::scores},
      {"--order-sum", &AttentionOrders::row_sum},
      {"--order-pv", &AttentionOrders::values},
  }};
  for (const auto& [option, part] : parts) {
    const std::optional<std::string> text = options.value(option);
    if (!text) continue;
    const Result<Order> order = order_of(option, *text);
    if (!order) return order.error();
    for (OrderedVariant& variant : variants) variant.orders.*part = *order;
  }
  return variants;
}

std::optional<Error> read_rounded_parts(const ParsedOptions& options,
                                        AttentionArithmetic& arithmetic) {
  const std::optional<std::string> text = options.value("--round");
  if (!text) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, bool AttentionArithmetic::*>, 3> parts{{
      {"scores", &AttentionArithmetic::round_scores},
      {"p", &AttentionArithmetic::round_p},
      {"out", &AttentionArithmetic::round_out},
  }};
  constexpr std::array<std::string_view, 4> names{"scores", "p", "out", "none"};
  for (const auto& [name, member] : parts) arithmetic.*member = false;
  if (*text == "none") return std::nullopt;
  std::string_view rest = *text;
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const auto& each) { return each.first == word; });
    if (word == "none") {
      return Error{ErrorKind::usage,
                   fmt::format("--round is {}; none is accepted alone", in_quotes(*text))};
    }
    if (part == parts.end()) return unknown_word("--round", word, names);
    if (arithmetic.*(part->second)) {
      return Error{ErrorKind::usage,
                   fmt::format("--round is {}, which has {} twice; each name once is accepted",
                               in_quotes(*text), word)};
    }
    arithmetic.*(part->second) = true;
    if (comma == rest.size()) return std::nullopt;
    rest.remove_prefix(comma + 1);
  }
}

Result<AttentionArithmetic> arithmetic_from(const ParsedOptions& options) {
  AttentionArithmetic arithmetic;
  const auto accumulator =
      format_named("--accumulate", options.value("--accumulate").value_or("binary32"));
  if (!accumulator) return accumulator.error();
  arithmetic.accumulator = (*accumulator)->format;
  if (const auto text = options.value("--product")) {
    const Result<Product> product = parse_product(*text);
    if (!product) {
      return Error{product.error().kind, fmt::format("--product: {}", product.error().message)};
    }
    arithmetic.product = *product;
  }
  if (const auto error = read_rounded_parts(options, arithmetic)) return *error;
  return arithmetic;
}

Result<Answer> run_predict(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return Error{ErrorKind::usage, fmt::format("{} is given; predict takes options only (kvsim "
                                               "predict --help)",
                                               in_quotes(options.positionals().front()))};
  }
  // Cheap mistakes are told before values are made or a file is read.
  const Result<AttentionArithmetic> arithmetic = arithmetic_from(options);
  if (!arithmetic) return arithmetic.error();
  Result<std::vector<OrderedVariant>> variants = variants_from(options);
  if (!variants) return variants.error();
  const std::int64_t cpus = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  const auto threads = integer_option(options, "--threads", cpus, 1, max_threads);
  if (!threads) return threads.error();
  const char* const simd_name = std::getenv("KVSIM_SIMD");
  const Result<SimdLevel> simd = select_simd_level(simd_name == nullptr ? "" : simd_name);
  if (!simd) {
    return Error{simd.error().kind, fmt::format("KVSIM_SIMD: {}", simd.error().message)};
  }
  const Result<GivenAttention> inputs = given_attention(options);
  if (!inputs) return inputs.error();

  OrderStudyOptions prediction;
  prediction.shape = inputs->shape;
  prediction.arithmetic = *arithmetic;
  prediction.arithmetic.storage = inputs->storage->format;
  prediction.variants = std::move(*variants);
  prediction.threads = static_cast<int>(*threads);
  prediction.simd = *simd;
  Result<OrderStudy> report = [&] {
    Progress progress("predict", options);
    prediction.progress = [&](double share) { progress.show(share); };
    return study_orders(prediction, inputs->values);
  }();
  if (!report) return report.error();
  Answer answer;
  answer.report = order_study_report(*report, *inputs);
  return answer;
}

}  // namespace

const Command predict_command{
    .name = "predict",
    .summary = "how far orders of summation move decode attention, with rigorous bounds",
    .synopsis = "--head-dim N [OPTIONS] | --tensors FILE [OPTIONS]",
    .description =
        "Replays decode attention (scores, scale, softmax, P·V) bit for bit in several orders of "
        "summation\n"
        "and compares each stage with the exact result: relative errors, units in the last place "
        "(ulp),\n"
        "how many elements differ between two orders, and bounds that no input can exceed.\n"
        "Orders: sequential, reverse, perm(3,0,2,1), pairwise, halving, exact, lanes(W,U), "
        "blocks(B),\n"
        "split(S), numpy-pairwise, torch-cascade(W); nested outermost first: "
        "split(4)/lanes(16,2).",
    .options = predict_options,
    .examples =
        "  kvsim predict --head-dim 256 --gqa 4\n"
        "  kvsim predict --tensors qkv.safetensors --order sequential --order 'lanes(16,4)'",
    .run = run_predict,
};

}  // namespace kvsim
