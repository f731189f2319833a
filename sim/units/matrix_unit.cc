// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/units/matrix_unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "sim/units/rows.h"
#include "softfloat/mutants.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

using softfloat::Format;

/// Devices of one generation: what holds for the first holds for the second.
struct Twin {
  std::string_view device;
  std::string_view other;
};
constexpr auto twins = std::to_array<Twin>({
    {"a100", "a2"},
    {"a100", "a30"},
    {"a100", "a40"},
    {"ada", "l40s"},
    {"ada", "rtx4090"},
    {"h100", "h200"},
    {"h100", "gh200"},
    {"rtxpro6000", "rtx5090"},
    {"mi210", "mi250"},
    {"mi210", "mi250x"},
    {"mi300", "mi300a"},
    {"mi300", "mi300x"},
});

/// The parts of "device.instruction.input.output".
struct NameParts {
  std::string_view device;
  std::string_view rest;     ///< "mma.f16.f32"
  std::string_view formats;  ///< "f16.f32"
};

NameParts parts_of(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t second = name.find('.', first + 1);
  return {name.substr(0, first), name.substr(first + 1), name.substr(second + 1)};
}

std::vector<MatrixUnit> all_rows() {
  std::vector<MatrixUnit> rows;
  for (const auto table : {units::volta_to_ada_rows(), units::hopper_rows(),
                           units::blackwell_rows(), units::amd_rows(), units::x86_rows()}) {
    rows.insert(rows.end(), table.begin(), table.end());
  }
  return rows;
}

constexpr auto parameters = std::to_array<UnitParameter>(
    {UnitParameter::zero_exponent, UnitParameter::fraction_bits, UnitParameter::operand_rounding,
     UnitParameter::accumulators, UnitParameter::final_rounding_down});

void set_parameter(MatrixUnit& unit, UnitParameter parameter, int value) {
  switch (parameter) {
    case UnitParameter::zero_exponent:
      unit.zero_exponent = value;
      return;
    case UnitParameter::fraction_bits:
      unit.fraction_bits = value;
      return;
    case UnitParameter::operand_rounding:
      unit.operand_rounding = static_cast<OperandRounding>(value);
      return;
    case UnitParameter::accumulators:
      // With one accumulator c takes the products itself, as with every other chain.
      unit.accumulators = value;
      unit.addend = value == 1 ? Addend::first : Addend::last;
      return;
    case UnitParameter::final_rounding_down:
      unit.final_rounding_down = value != 0;
      return;
  }
}

/// "a, b or c" of what an option accepts.
std::string accepted_values(const UnitOption& option) {
  std::string out;
  for (std::size_t i = 0; i < option.accepted.size(); ++i) {
    if (i > 0) out += i + 1 == option.accepted.size() ? " and " : ", ";
    out += parameter_text(option.parameter, option.accepted[i]);
  }
  return out;
}

// Longer than any name, so that hostile input is not compared with a hundred rows.
constexpr std::size_t longest_name = 160;

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 64)) out += c >= ' ' && c < 0x7f ? c : '?';
  return out + (text.size() > 64 ? "…'" : "'");
}

Error unknown_unit(std::string_view name) {
  std::vector<std::string> names;
  for (const MatrixUnit& unit : matrix_units()) {
    names.emplace_back(unit.name);
    for (std::string& alias : unit_aliases(unit)) names.push_back(std::move(alias));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string message = fmt::format(
      "no matrix unit is called {}; accepted are the names of kvsim kernels --units, such as "
      "h100.mma.f16.f32",
      quoted(name));
  const std::string_view near = softfloat::nearest(name, views);
  if (!near.empty()) message += fmt::format("; did you mean {}?", near);
  return {ErrorKind::usage, std::move(message)};
}

Error no_such_option(const MatrixUnit& unit, std::string_view text) {
  if (unit.options.empty()) {
    return {ErrorKind::usage, fmt::format("{} has no open parameter; {} is accepted without {}",
                                          unit.name, unit.name, quoted(text))};
  }
  std::string accepted;
  for (const UnitOption& option : unit.options) {
    if (!accepted.empty()) accepted += "; ";
    accepted += fmt::format("{}= {}", to_string(option.parameter), accepted_values(option));
  }
  return {ErrorKind::usage,
          fmt::format("{} has no option {}; accepted are {}", unit.name, quoted(text), accepted)};
}

/// Applies "name=value"; an Error where the unit does not leave it open.
std::optional<Error> apply_option(MatrixUnit& unit, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  for (const UnitOption& option : unit.options) {
    if (to_string(option.parameter) != name) continue;
    for (const int accepted : option.accepted) {
      if (parameter_text(option.parameter, accepted) == value) {
        set_parameter(unit, option.parameter, accepted);
        return std::nullopt;
      }
    }
    return Error{ErrorKind::usage, fmt::format("{} of {} is {}; accepted are {}", name, unit.name,
                                               quoted(value), accepted_values(option))};
  }
  return no_such_option(unit, text);
}

}  // namespace

std::span<const MatrixUnit> matrix_units() {
  static const std::vector<MatrixUnit> rows = all_rows();
  return rows;
}

std::vector<std::string> unit_aliases(const MatrixUnit& unit) {
  const NameParts parts = parts_of(unit.name);
  std::vector<std::string> aliases;
  if (unit.is_default) aliases.push_back(fmt::format("{}.{}", parts.device, parts.formats));
  for (const Twin& twin : twins) {
    if (twin.device != parts.device) continue;
    aliases.push_back(fmt::format("{}.{}", twin.other, parts.rest));
    if (unit.is_default) aliases.push_back(fmt::format("{}.{}", twin.other, parts.formats));
  }
  return aliases;
}

const MatrixUnit* find_matrix_unit(std::string_view name) {
  if (name.size() > longest_name) return nullptr;
  for (const MatrixUnit& unit : matrix_units()) {
    if (unit.name == name) return &unit;
  }
  for (const MatrixUnit& unit : matrix_units()) {
    const std::vector<std::string> aliases = unit_aliases(unit);
    if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return &unit;
  }
  return nullptr;
}

Result<MatrixUnit> parse_matrix_unit(std::string_view text) {
  const std::size_t bracket = text.find('(');
  const std::string_view name = text.substr(0, bracket);
  const MatrixUnit* row = find_matrix_unit(name);
  if (row == nullptr) return unknown_unit(name);
  MatrixUnit unit = *row;
  if (bracket == std::string_view::npos) return unit;
  if (!text.ends_with(')')) {
    return Error{ErrorKind::usage, fmt::format("{} does not end with ')'; {}(option=value) is "
                                               "accepted",
                                               quoted(text), unit.name)};
  }
  std::string_view rest = text.substr(bracket + 1, text.size() - bracket - 2);
  for (;;) {
    const std::size_t comma = rest.find(',');
    if (const auto error = apply_option(unit, rest.substr(0, comma))) return *error;
    if (comma == std::string_view::npos) return unit;
    rest.remove_prefix(comma + 1);
  }
}

std::string to_string(const MatrixUnit& unit) {
  const MatrixUnit* row = find_matrix_unit(unit.name);
  std::string options;
  for (const UnitParameter parameter : parameters) {
    const int value = parameter_value(unit, parameter);
    if (row == nullptr || value == parameter_value(*row, parameter)) continue;
    if (!options.empty()) options += ",";
    options += fmt::format("{}={}", to_string(parameter), parameter_text(parameter, value));
  }
  if (mutant_is_on(Mutant::unit_option_lost)) options.clear();
  return options.empty() ? std::string(unit.name) : fmt::format("{}({})", unit.name, options);
}

std::string_view to_string(UnitOperation operation) {
  constexpr auto names = std::to_array<std::string_view>(
      {"FMA", "FTZ-AddMul", "E-FDPA", "T-FDPA", "ST-FDPA", "GST-FDPA", "TR-FDPA", "GTR-FDPA"});
  return names[static_cast<std::size_t>(operation)];
}

std::string_view to_string(OutputConversion conversion) {
  constexpr auto names =
      std::to_array<std::string_view>({"RZ-FP32", "RZ-E8M13", "RNE-FP16", "RNE-FP32", "RNE-FP64"});
  return names[static_cast<std::size_t>(conversion)];
}

std::string_view to_string(UnitParameter parameter) {
  constexpr auto names =
      std::to_array<std::string_view>({"zero_exponent", "fraction_bits", "operand_rounding",
                                       "accumulators", "final_rounding_down"});
  return names[static_cast<std::size_t>(parameter)];
}

std::string parameter_text(UnitParameter parameter, int value) {
  if (parameter == UnitParameter::operand_rounding) {
    return static_cast<OperandRounding>(value) == OperandRounding::truncate ? "truncate"
                                                                            : "nearest_ties_away";
  }
  if (parameter == UnitParameter::final_rounding_down) return value != 0 ? "yes" : "no";
  return fmt::format("{}", value);
}

int parameter_value(const MatrixUnit& unit, UnitParameter parameter) {
  switch (parameter) {
    case UnitParameter::zero_exponent:
      return unit.zero_exponent;
    case UnitParameter::fraction_bits:
      return unit.fraction_bits;
    case UnitParameter::operand_rounding:
      return static_cast<int>(unit.operand_rounding);
    case UnitParameter::accumulators:
      return unit.accumulators;
    case UnitParameter::final_rounding_down:
      break;
  }
  return unit.final_rounding_down ? 1 : 0;
}

std::string_view unit_format_name(const Format& format) {
  if (format == softfloat::binary16) return "f16";
  if (format == softfloat::bfloat16) return "bf16";
  if (format == softfloat::binary32) return "f32";
  if (format == softfloat::binary64) return "f64";
  if (format == ue4m3) return "ue4m3";
  return softfloat::format_name(format);
}

}  // namespace kvsim
