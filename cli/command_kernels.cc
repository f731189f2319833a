// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>

#include "cli/command.h"
#include "cli/unit_report.h"
#include "sim/units/matrix_unit.h"

namespace kvsim {
namespace {

constexpr std::array kernels_options{
    OptionSpec{"--units", "", "the matrix units; with NAME, everything about one of them"},
};

Result<Answer> run_kernels(const ParsedOptions& options) {
  if (!options.has("--units")) {
    return Error{ErrorKind::usage, "kernels has no --units; --units is accepted"};
  }
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage, fmt::format("{} names are given; at most one is accepted",
                                               options.positionals().size())};
  }
  Answer answer;
  if (options.positionals().empty()) {
    answer.report = units_report();
    return answer;
  }
  const Result<MatrixUnit> unit = parse_matrix_unit(options.positionals().front());
  if (!unit) return unit.error();
  answer.report = unit_report(*unit);
  return answer;
}

}  // namespace

const Command kernels_command{
    .name = "kernels",
    .summary = "the matrix units that can be replayed, with their parameters and sources",
    .synopsis = "--units [NAME] [OPTIONS]",
    .description =
        "Lists the matrix units of GPUs and CPUs, or everything about the one called NAME: how "
        "one\n"
        "instruction computes d = c + Σ a[k]·b[k]. L is the number of products that one block "
        "sums\n"
        "at once, F the fraction bits that it keeps below the largest exponent; an instruction is "
        "a\n"
        "chain of blocks. h100.f16.f32 is short for h100.mma.f16.f32; h200 and l40s stand for "
        "their\n"
        "generations. A parameter that the sources leave open is set in brackets:\n"
        "'a100.mma.f16.f16(zero_exponent=-20)'.",
    .options = kernels_options,
    .examples = "  kvsim kernels --units\n  kvsim kernels --units h100.wgmma.e4m3.f32 --json",
    .run = run_kernels,
};

}  // namespace kvsim
