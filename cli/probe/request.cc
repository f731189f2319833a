// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/probe/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cli/printable.h"

namespace kvsim {
namespace {

constexpr std::array rows{
    OptionSpec{"--device", "NAME",
               "cuda, the first NVIDIA GPU, or sim, the simulator's own units (required)"},
    OptionSpec{"--unit", "NAME",
               "unit to probe, or all of the device (default: all where no --table is given)",
               true},
    OptionSpec{"--row", "NAME", "compare with this row of the table, not with that of the unit"},
    OptionSpec{"--table", "NAME",
               "results of an instruction for every input: ex2, rcp, rsqrt, lg2 or all", true},
    OptionSpec{"--table-bits", "B",
               "log2 of the entries of a table, 1 to 24 (default 24, or as many as there are)"},
    OptionSpec{"--rows", "N", "random rows beside the probes (default 2000)"},
    OptionSpec{"--seed", "S", "which random rows (default 1)"},
    OptionSpec{"--out", "DIR",
               "write operands, results and tables there: UNIT.safetensors, ex2.safetensors"},
};

Result<MatrixUnit> unit_option(std::string_view option, const std::string& text) {
  Result<MatrixUnit> unit = parse_matrix_unit(text);
  if (unit) return unit;
  return Error{unit.error().kind, fmt::format("{}: {}", option, unit.error().message)};
}

bool same_operands(const MatrixUnit& x, const MatrixUnit& y) {
  const gpu::UnitShape a = gpu::shape_of(x);
  const gpu::UnitShape b = gpu::shape_of(y);
  return a.operand == b.operand && a.input == b.input && a.output == b.output &&
         a.products == b.products && a.scale == b.scale && a.scale_block == b.scale_block;
}

Result<bool> read_units(const ParsedOptions& options, ProbeRequest& request) {
  std::vector<std::string> names = options.values("--unit");
  const bool all = std::ranges::find(names, "all") != names.end();
  if (all || (names.empty() && !options.has("--table"))) names = request.device->units();
  const std::optional<std::string> other = options.value("--row");
  if (other && (all || names.size() != 1)) {
    return Error{ErrorKind::usage, "--row stands for the row of one unit; one --unit is accepted"};
  }
  request.units.reserve(names.size());
  for (const std::string& name : names) {
    auto unit = unit_option("--unit", name);
    if (!unit) return unit.error();
    auto row = other ? unit_option("--row", *other) : unit;
    if (!row) return row.error();
    if (!same_operands(*unit, *row)) {
      return Error{ErrorKind::usage,
                   fmt::format("--row {}: {} takes other operands; a row with the same formats and "
                               "K is accepted",
                               to_string(*row), to_string(*unit))};
    }
    request.units.push_back({*unit, *row});
  }
  return true;
}

Result<bool> read_tables(const ParsedOptions& options, ProbeRequest& request) {
  std::vector<std::string_view> accepted;
  for (const gpu::ElementaryRow& row : gpu::elementary_rows()) accepted.push_back(row.name);
  const std::vector<std::string> names = options.values("--table");
  const bool all = std::ranges::find(names, "all") != names.end();
  for (const std::string& name : names) {
    if (name != "all" && std::ranges::find(accepted, name) == accepted.end()) {
      accepted.emplace_back("all");
      return unknown_word("--table", name, accepted);
    }
  }
  for (const gpu::ElementaryRow& row : gpu::elementary_rows()) {
    if (all || std::ranges::find(names, row.name) != names.end()) request.tables.push_back(&row);
  }
  return true;
}

}  // namespace

std::span<const OptionSpec> probe_option_rows() { return rows; }

Result<ProbeRequest> probe_request(const ParsedOptions& options) {
  if (!options.positionals().empty()) {
    return Error{ErrorKind::usage, fmt::format("{} is no option; --device NAME is accepted",
                                               in_quotes(options.positionals().front()))};
  }
  const auto device = options.value("--device");
  if (!device) {
    return Error{ErrorKind::usage, "no --device; --device cuda or --device sim is accepted"};
  }
  ProbeRequest request;
  const auto bits = integer_option(options, "--table-bits", 24, 1, 24);
  if (!bits) return bits.error();
  request.table_bits = static_cast<int>(*bits);
  const auto random = integer_option(options, "--rows", 2000, 0, 1'000'000);
  if (!random) return random.error();
  request.options.random_rows = static_cast<std::size_t>(*random);
  const auto seed = integer_option(options, "--seed", 1, 0, INT64_MAX);
  if (!seed) return seed.error();
  request.options.seed = static_cast<std::uint64_t>(*seed);
  request.out = options.value("--out");
  const auto tables = read_tables(options, request);
  if (!tables) return tables.error();
  auto found = gpu::make_probe_device(*device);
  if (!found) {
    const bool usage = found.error().kind == ErrorKind::usage;
    return Error{found.error().kind,
                 usage ? fmt::format("--device {}; cuda and sim are accepted", in_quotes(*device))
                       : found.error().message};
  }
  request.device = std::move(*found);
  const auto units = read_units(options, request);
  if (!units) return units.error();
  return request;
}

}  // namespace kvsim
