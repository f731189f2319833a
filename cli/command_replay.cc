// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/printable.h"
#include "cli/replay_dot.h"

namespace kvsim {
namespace {

constexpr std::array replay_options{
    OptionSpec{"--unit", "NAME", "the matrix unit (kvsim kernels --units)"},
    OptionSpec{"--tensors", "FILE",
               "safetensors file with a and b [rows, K] and c [rows], in the unit's formats; units "
               "with scales also read a_scales and b_scales [rows, K ÷ block]"},
    OptionSpec{"--expect", "NAME",
               "exit 1 unless every row equals this tensor [rows] of the file, bit for bit"},
    OptionSpec{"--out", "FILE", "write the results to a safetensors file, as tensor d [rows]"},
};

/// One operator of `kvsim replay`.
struct Operator {
  std::string_view name;
  Result<Answer> (*run)(const ParsedOptions& options);
};
constexpr std::array operators{Operator{"dot", replay_dot}};

Result<Answer> run_replay(const ParsedOptions& options) {
  std::array<std::string_view, operators.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = operators[i].name;
  if (options.positionals().empty()) {
    return Error{ErrorKind::usage,
                 fmt::format("OPERATOR is missing; accepted is {}", join_words(names))};
  }
  const std::string& name = options.positionals().front();
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage,
                 fmt::format("{} is given; replay {} takes options only (kvsim replay --help)",
                             in_quotes(options.positionals()[1]), printable(name))};
  }
  for (const Operator& each : operators) {
    if (each.name == name) return each.run(options);
  }
  return unknown_word("OPERATOR", name, names);
}

}  // namespace

const Command replay_command{
    .name = "replay",
    .summary = "repeat an operation on captured tensors, bit for bit, and compare",
    .synopsis = "dot --unit NAME --tensors FILE [OPTIONS]",
    .description =
        "Computes d = c + Σ a[k]·b[k] for each row of a file as the matrix unit computes it, and\n"
        "prints the SHA-256 of the results' bytes. With --expect it compares them with a tensor "
        "of\n"
        "the file: what the hardware itself gave.",
    .options = replay_options,
    .examples =
        "  kvsim replay dot --unit h100.f16.f32 --tensors h100-f16-f32.safetensors --expect d\n"
        "  kvsim replay dot --unit 'a100.f16.f16(zero_exponent=-20)' --tensors rows.safetensors",
    .run = run_replay,
};

}  // namespace kvsim
