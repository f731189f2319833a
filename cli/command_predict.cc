// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>

#include "cli/command.h"
#include "cli/predict/order_study.h"
#include "cli/predict/run_prediction.h"
#include "cli/printable.h"

namespace kvsim {
namespace {

constexpr std::array predict_options{
    OptionSpec{"--head-dim", "N",
               "elements of one head (one of --head-dim, --model, --config and "
               "--tensors is needed)"},
    OptionSpec{"--gqa", "R",
               "query heads that read one K/V head, 1 to 1024 (default heads / kv-heads, or 1)"},
    OptionSpec{"--kv-heads", "N", "K/V heads, 1 to 1024 (default 2)"},
    OptionSpec{"--heads", "N",
               "query heads; with --gqa it must equal gqa × kv-heads (default: that)"},
    OptionSpec{"--model", "NAME",
               "a built-in shape: llama-2-7b, mistral-7b-v0.3, gemma-2-2b, "
               "gemma-3-270m, qwen2.5-7b, llama-3.1-8b, smollm2-135m"},
    OptionSpec{"--config", "FILE", "the shape of a Hugging Face config.json"},
    OptionSpec{"--tensors", "FILE",
               "real values from a safetensors file: q [query_heads, query_len, head_dim], k and v "
               "[kv_heads, kv_len, head_dim]"},
    OptionSpec{"--kv-len", "N", "keys in the cache, 1 to 1048576 (default 512)"},
    OptionSpec{"--format", "NAME",
               "storage format of q, k, v, weights and states (default fp16, or the config's)"},
    OptionSpec{"--device", "NAME",
               "whose kernels: h100 (default), a100, v100, b200, mi300, cpu or batch-invariant"},
    OptionSpec{"--on", "KERNEL",
               "attention kernel of cache-on: a name of kvsim kernels, decode or prefill (default "
               "decode: the device's for one query)"},
    OptionSpec{"--off", "KERNEL", "attention kernel of cache-off (default prefill)"},
    OptionSpec{"--rows", "LIST",
               "the same row in launches of so many rows (batch, padding): 1,64 or 1..16"},
    OptionSpec{"--cached", "N", "a prefix of N tokens is in the cache …"},
    OptionSpec{"--new", "N", "… and N more are prefilled, against all of them at once"},
    OptionSpec{"--chunks", "LIST", "a prompt prefilled in chunks of 512,512,37 tokens"},
    OptionSpec{"--verify-width", "LIST", "speculative decoding that verifies 2..16 tokens at once"},
    OptionSpec{"--ranks", "LIST", "tensor parallelism on 1,2,4 ranks"},
    OptionSpec{"--layers", "N", "layers of the decoder that are run (default: all)"},
    OptionSpec{"--prefix", "N",
               "tokens before the last one in the decoder, 1 to 1024 (default 16)"},
    OptionSpec{"--trials", "N", "pairs of tokens whose logits are compared (default 2000)"},
    OptionSpec{
        "--margins", "FILE",
        "margins of your model: JSON {\"prompts\": [[[top logit, margin], ...], ...]} or a list "
        "of numbers (default: those of SmolLM2-135M-Instruct on GSM8K)"},
    OptionSpec{"--exp-table", "FILE",
               "captured results of ex2.approx (docs/exp.md): without them every result that hangs "
               "on it is marked exp: bounded"},
    OptionSpec{"--exp-ulp", "N",
               "also run the attention layer with the bounded exp moved by up to N ulp, and print "
               "the band"},
    OptionSpec{"--rope", "NAME",
               "RoPE factors of the decoder: kernel (default: the device's) or torch-cpu "
               "(libtorch's, as data)"},
    OptionSpec{"--setting", "NAME",
               "of libtorch's environment: installed (default) or pinned (docs/run.md)"},
    OptionSpec{"--quick", "",
               "two layers, 128 keys, 500 trials and --rows 1,64 unless you say "
               "otherwise"},
    OptionSpec{
        "--order", "ORDER",
        "study of summation orders instead: the order of all three sums of attention; may be "
        "repeated (default: a set of kernels' orders)",
        true},
    OptionSpec{"--order-qk", "ORDER", "study: order of q·k over head_dim, in place of --order"},
    OptionSpec{"--order-sum", "ORDER",
               "study: order of the softmax's row sum, in place of --order"},
    OptionSpec{"--order-pv", "ORDER", "study: order of P·V over the keys, in place of --order"},
    OptionSpec{"--accumulate", "NAME", "study: format of sums, scale and softmax (default fp32)"},
    OptionSpec{
        "--product", "NAME",
        "study: rounded (default: each product to the accumulator's format), fused or exact"},
    OptionSpec{"--round", "LIST",
               "study: what is rounded to storage: scores, p, out, separated by commas, or none "
               "(default scores,p,out)"},
    OptionSpec{"--query-len", "N",
               "study: queries, 1 to kv-len (default 1: decoding); query i sees keys 0 to kv-len - "
               "query-len + i"},
    OptionSpec{"--input", "NAME",
               "synthetic values: gaussian (default) or outliers (a few large K channels, as real "
               "keys have)"},
    OptionSpec{"--seed", "N", "seed of everything synthetic, 0 to 9223372036854775807 (default 1)"},
    OptionSpec{"--threads", "N",
               "threads, 1 to 1024 (default: one for each CPU); never changes a result"},
};

Result<Answer> run_predict(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return Error{ErrorKind::usage, fmt::format("{} is given; predict takes options only (kvsim "
                                               "predict --help)",
                                               in_quotes(options.positionals().front()))};
  }
  if (order_study_option(options)) return run_order_study(options);
  return run_prediction(options);
}

}  // namespace

const Command predict_command{
    .name = "predict",
    .summary = "how far cache-on and cache-off are apart, and which tokens can flip",
    .synopsis = "--head-dim N | --model NAME | --config FILE | --tensors FILE [OPTIONS]",
    .description =
        "Computes one attention layer, the K/V projections and a seeded decoder of your shape "
        "with\n"
        "a device's kernels, with the cache and without it, bit for bit, and tells what differs, "
        "by\n"
        "which kernel rule and at which sizes; whether grouped queries amplify it; how it grows "
        "by\n"
        "layer; the chance that a greedy token flips at a margin; controls; a tolerance for "
        "tests.\n"
        "With --order, --order-qk, --order-sum, --order-pv, --accumulate, --product or --round: "
        "one\n"
        "attention layer in several orders of summation (docs/orders.md), stage by stage, beside\n"
        "rigorous bounds.",
    .options = predict_options,
    .examples =
        "  kvsim predict --head-dim 256 --gqa 4\n"
        "  kvsim predict --model llama-3.1-8b --device a100 --layers 2 --verify-width 2..16",
    .run = run_predict,
};

}  // namespace kvsim
