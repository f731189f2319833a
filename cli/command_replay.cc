// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/printable.h"
#include "cli/replay/operators.h"
#include "cli/replay/report.h"
#include "cli/replay/tensors.h"

namespace kvsim {
namespace {

constexpr std::array replay_options{
    OptionSpec{"--kernel", "NAME", "a kernel (kvsim kernels); may be repeated", true},
    OptionSpec{"--order", "ORDER",
               "linear, norm, softmax: sum in this order (docs/numerics.md) in place of a kernel; "
               "may be repeated",
               true},
    OptionSpec{"--unit", "NAME", "dot: a matrix unit (kvsim kernels --units); may be repeated",
               true},
    OptionSpec{"--tensors", "FILE", "the safetensors file with the operator's tensors"},
    OptionSpec{"--expect", "NAME",
               "exit 1 unless every result equals this tensor of the file, bit for bit"},
    OptionSpec{"--out", "FILE",
               "write the results to a safetensors file, whole or not at all: tensor d (dot) or "
               "out, of attention also lse (F32 [query_heads, query_len]) where the kernel has "
               "one; of several kernels out.KERNEL and lse.KERNEL"},
    OptionSpec{"--input", "NAME",
               "round every tensor to this format first (default: as the file has them)"},
    OptionSpec{"--accumulate", "NAME", "format of the sums of --order (default fp32)"},
    OptionSpec{"--product", "NAME",
               "products of --order: rounded (default: to the sums' format), fused or exact"},
    OptionSpec{"--round-to", "NAME",
               "format of the results of --order (default: that of the tensors)"},
    OptionSpec{"--norm", "NAME", "norm of --order: rms (default) or layer"},
    OptionSpec{"--epsilon", "E", "norm: added under the root, 0 to 1 (default 1e-6)"},
    OptionSpec{"--base", "B", "rope: base of the frequencies, at least 1 (default 10000)"},
    OptionSpec{"--first-position", "N", "rope: position of x[·, 0, ·], 0 to 16777216 (default 0)"},
    OptionSpec{"--rotated", "N", "rope: channels that are rotated, even (default head_dim)"},
    OptionSpec{"--causal", "", "attention: a query sees the keys up to its own position (default)"},
    OptionSpec{"--no-causal", "", "attention: a query sees every key"},
    OptionSpec{"--window", "N",
               "attention: a query sees the last N keys only (default 0: no window)"},
    OptionSpec{"--soft-cap", "C", "attention: scores become C·tanh(score ÷ C) (default 0: not)"},
    OptionSpec{"--scale", "S", "attention: factor of the scores (default 1 ÷ √head_dim)"},
    OptionSpec{"--kv-lens", "LIST",
               "attention: keys of each sequence of a batch, such as 900,1000,120,500; the "
               "sequences share the file's positions evenly; may be repeated, to compare launches "
               "(default: one sequence with every key)",
               true},
    OptionSpec{"--batch", "N",
               "attention: sequences in the launch, from those of --kv-lens to 65536 (default: "
               "those)"},
    OptionSpec{"--split-by", "NAME",
               "attention: batch (default: kernels choose splits for the launch) or sequence (each "
               "as if it were alone)"},
    OptionSpec{"--splits", "N",
               "attention: parts of the keys, 1 to 4096 (default 0: the kernel's "
               "choice)"},
    OptionSpec{"--split-size", "N", "attention: keys of a part (default 0: the kernel's choice)"},
    OptionSpec{"--multiprocessors", "N",
               "of the device, 1 to 4096 (default 0: those of the kernel's device)"},
    OptionSpec{"--paged", "", "attention: keys and values lie in pages"},
    OptionSpec{"--page-size", "N", "attention: keys of a page, 1 to 4096 (default 16)"},
    OptionSpec{"--cpu-threads", "N",
               "attention: threads of a kernel that runs on a CPU, 1 to 4096 (default 1)"},
    OptionSpec{"--exp-table", "FILE",
               "results of ex2.approx captured on a device: safetensors, tensor ex2 F32 [2^b], "
               "entry i = ex2(i ÷ 2^b) (docs/exp.md)"},
    OptionSpec{
        "--exp-ulp", "N",
        "rerun with seeded errors of up to N ulp in an exp that is bounded, and print how far "
        "the results move"},
    OptionSpec{"--threads", "N",
               "threads, 1 to 1024 (default: one for each CPU); never changes a result"},
};

constexpr std::array<std::string_view, 4> shared_options{"--tensors", "--expect", "--out",
                                                         "--threads"};

/// The error for an option that the operator does not read.
std::optional<Error> check_options(const ParsedOptions& options, const ReplayOperator& chosen) {
  for (const OptionSpec& option : replay_options) {
    if (!options.has(option.name)) continue;
    if (std::ranges::find(shared_options, option.name) != shared_options.end()) continue;
    if (std::ranges::find(chosen.options, option.name) != chosen.options.end()) continue;
    return Error{ErrorKind::usage,
                 fmt::format("{} has no effect on replay {}; accepted are {}", option.name,
                             chosen.name, join_words(chosen.options))};
  }
  return std::nullopt;
}

Result<const ReplayOperator*> operator_named(const ParsedOptions& options) {
  std::vector<std::string_view> names;
  for (const ReplayOperator* each : replay_operators()) names.push_back(each->name);
  if (options.positionals().empty()) {
    return Error{ErrorKind::usage,
                 fmt::format("OPERATOR is missing; accepted is {}", join_words(names, "or"))};
  }
  const std::string& name = options.positionals().front();
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage,
                 fmt::format("{} is given; replay {} takes options only (kvsim replay --help)",
                             in_quotes(options.positionals()[1]), printable(name))};
  }
  for (const ReplayOperator* each : replay_operators()) {
    if (each->name == name) return each;
  }
  return unknown_word("OPERATOR", name, names);
}

Result<Answer> run_replay(const ParsedOptions& options) {
  const Result<const ReplayOperator*> chosen = operator_named(options);
  if (!chosen) return chosen.error();
  if (const auto error = check_options(options, **chosen)) return *error;
  const Result<ReplayFile> file = ReplayFile::open(options);
  if (!file) return file.error();
  if (const auto error = file->check_expected(options)) return *error;  // before the long work
  const Result<Replay> replay = (*chosen)->run(options, *file);
  if (!replay) return replay.error();
  const Result<std::optional<Expected>> expected = file->expected(options, *replay);
  if (!expected) return expected.error();
  if (const auto error = write_outputs(options, *replay)) return *error;
  return replay_answer(*replay, file->path(), *expected);
}

}  // namespace

const Command replay_command{
    .name = "replay",
    .summary = "repeat an operation on captured tensors, bit for bit, and compare",
    .synopsis = "OPERATOR --tensors FILE --kernel NAME [--kernel NAME …] [OPTIONS]",
    .description =
        "Computes what kernels compute from the tensors of a safetensors file, and prints the\n"
        "SHA-256 of the results' bytes. With --expect it compares them with a tensor of the file:\n"
        "what the hardware itself gave. Of several kernels it says which agree bit for bit, how "
        "far\n"
        "the others lie apart, and at which heads and positions (docs/replay.md).\n"
        "\n"
        "operators and their tensors:\n"
        "  attention  q [query_heads, query_len, head_dim], k and v [kv_heads, kv_len, head_dim]\n"
        "  linear     x [rows, terms], w [outputs, terms] as checkpoints hold it; bias [outputs]\n"
        "  norm       x [rows, n]; weight and bias [n]\n"
        "  softmax    x [rows, n]\n"
        "  rope       x [heads, positions, head_dim]\n"
        "  dot        a and b [rows, K], c [rows], in the formats of --unit; a_scales and "
        "b_scales\n"
        "             [rows, K ÷ block] of units with scales\n"
        "\n"
        "`exp: bounded` marks results that hang on an exponential which a GPU does not publish.",
    .options = replay_options,
    .examples =
        "  kvsim replay attention --tensors qkv.safetensors --kernel h100-fa3 --kernel h100-eager\n"
        "  kvsim replay dot --unit h100.f16.f32 --tensors h100-f16-f32.safetensors --expect d",
    .run = run_replay,
};

}  // namespace kvsim
