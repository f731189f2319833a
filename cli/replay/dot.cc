// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/dot.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/replay/dot_tensors.h"
#include "cli/replay/operators.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

std::vector<std::byte> little_endian(const Format& format, const std::vector<Bits>& codes) {
  std::vector<std::byte> bytes;
  bytes.reserve(codes.size() * static_cast<std::size_t>(format.width()) / 8);
  for (const Bits code : codes) {
    for (int shift = 0; shift < format.width(); shift += 8) {
      bytes.push_back(static_cast<std::byte>(code >> shift & 0xff));
    }
  }
  return bytes;
}

Result<std::vector<MatrixUnit>> units_from(const ParsedOptions& options) {
  std::vector<MatrixUnit> units;
  for (const std::string& text : options.values("--unit")) {
    const Result<MatrixUnit> unit = parse_matrix_unit(text);
    if (!unit) return Error{unit.error().kind, fmt::format("--unit: {}", unit.error().message)};
    for (const MatrixUnit& other : units) {
      if (to_string(other) == to_string(*unit)) {
        return Error{ErrorKind::usage,
                     fmt::format("--unit {} is given twice; different units are accepted",
                                 to_string(*unit))};
      }
    }
    units.push_back(*unit);
  }
  if (units.empty()) {
    return Error{ErrorKind::usage,
                 "replay dot has no --unit; --unit NAME, such as --unit h100.f16.f32 (kvsim "
                 "kernels --units), is accepted"};
  }
  return units;
}

Result<Replay> replay_dot(const ParsedOptions& options, const ReplayFile& file) {
  const Result<std::vector<MatrixUnit>> units = units_from(options);
  if (!units) return units.error();
  Replay replay;
  replay.operator_name = "dot";
  replay.tensor = "d";
  replay.element_name = "row";
  replay.position_name = "row";
  replay.position_names = "rows";
  replay.nan = NanEquality::equal_bits;  // a unit says which NaN it gives
  replay.input = Json::object();
  replay.input["units"] = Json::array();
  Progress progress("replay dot", options);
  for (const MatrixUnit& unit : *units) {
    const Result<DotTensors> tensors = read_dot_tensors(file.file(), unit);
    if (!tensors) return tensors.error();
    std::vector<Bits> results(tensors->rows);
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i] = unit_dot(unit, tensors->row(i));
      if (i % 1024 == 0) {
        const double share = static_cast<double>(i) / static_cast<double>(results.size());
        progress.show((static_cast<double>(replay.outputs.size()) + share) /
                      static_cast<double>(units->size()));
      }
    }
    replay.shape = {static_cast<std::int64_t>(tensors->rows)};
    replay.positions = replay.shape.front();
    replay.input["k"] = tensors->k;
    ReplayOutput output;
    output.name = to_string(unit);
    output.format = unit.output;
    output.evidence = unit.evidence;
    output.bytes = little_endian(unit.output, results);
    replay.input["units"].push_back(output.name);
    replay.facts.emplace_back("unit", fmt::format("{} ({}, {})", output.name,
                                                  to_string(unit.operation), unit.instruction));
    replay.outputs.push_back(std::move(output));
  }
  replay.facts.emplace_back("rows", fmt::format("{}", replay.positions));
  replay.facts.emplace_back("K", replay.input["k"].dump());
  return replay;
}

constexpr std::array<std::string_view, 1> dot_options{"--unit"};

}  // namespace

const ReplayOperator dot_operator{
    .name = "dot",
    .options = dot_options,
    .run = replay_dot,
};

}  // namespace kvsim
