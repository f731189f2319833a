// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/kernels/own_kernels.h"
#include "cli/kernels/report.h"
#include "cli/kernels/unit_report.h"
#include "sim/units/matrix_unit.h"

namespace kvsim {
namespace {

constexpr std::array kernels_options{
    OptionSpec{"--operator", "NAME",
               "only those of attention, linear, norm, softmax, rope, activation, residual, exp, "
               "dispatch or unit"},
    OptionSpec{"--device", "NAME", "only those of this device class, such as h100 or cpu"},
    OptionSpec{"--units", "",
               "the matrix units with their parameters; with NAME, everything about one of them"},
};

Result<Report> units(const ParsedOptions& options) {
  for (const std::string_view option : {"--operator", "--device"}) {
    if (options.has(option)) {
      return Error{ErrorKind::usage,
                   fmt::format("{} is given with --units; one of them is accepted", option)};
    }
  }
  if (options.positionals().empty()) return units_report();
  const Result<MatrixUnit> unit = parse_matrix_unit(options.positionals().front());
  if (!unit) return unit.error();
  return unit_report(*unit);
}

Result<Report> kernels(const ParsedOptions& options) {
  if (options.has("--units")) return units(options);
  KernelFilter filter{{}, options.value("--operator"), options.value("--device")};
  const Result<std::vector<OwnKernel>> own = read_own_kernels(own_kernels_path());
  if (!own) return own.error();
  if (options.positionals().empty()) return kernels_report(filter, *own);
  const std::string& name = options.positionals().front();
  // A matrix unit is told whole, by any name that it has and with options in brackets.
  if (!filter.operator_name && !filter.device) {
    const Result<MatrixUnit> unit = parse_matrix_unit(name);
    if (unit) return unit_report(*unit);
  }
  filter.name = name;
  return kernels_report(filter, *own);
}

Result<Answer> run_kernels(const ParsedOptions& options) {
  if (options.positionals().size() > 1) {
    return Error{ErrorKind::usage, fmt::format("{} names are given; at most one is accepted",
                                               options.positionals().size())};
  }
  Result<Report> report = kernels(options);
  if (!report) return report.error();
  Answer answer;
  answer.report = std::move(*report);
  return answer;
}

}  // namespace

const Command kernels_command{
    .name = "kernels",
    .summary = "the kernels that can be replayed, with their parameters, sources and evidence",
    .synopsis = "[NAME] [OPTIONS]",
    .description =
        "Lists the kernels of every operator, or everything about the one called NAME: in which\n"
        "order it sums, what it rounds where, when it splits. evidence says how well the source\n"
        "supports the row: documented, measured, inferred or assumed. What kvsim reveal --save\n"
        "kept stands last, from $XDG_CONFIG_HOME/kvsim/kernels.toml (or ~/.config).\n"
        "\n"
        "--units lists the matrix units of GPUs and CPUs: how one instruction computes\n"
        "d = c + Σ a[k]·b[k]. L is the number of products that one block sums at once, F the\n"
        "fraction bits that it keeps below the largest exponent; an instruction is a chain of\n"
        "blocks. h100.f16.f32 is short for h100.mma.f16.f32; h200 and l40s stand for their\n"
        "generations. A parameter that the sources leave open is set in brackets:\n"
        "'a100.mma.f16.f16(zero_exponent=-20)'.",
    .options = kernels_options,
    .examples =
        "  kvsim kernels --operator attention\n"
        "  kvsim kernels h100-fa3\n"
        "  kvsim kernels --units h100.wgmma.e4m3.f32 --json",
    .run = run_kernels,
};

}  // namespace kvsim
