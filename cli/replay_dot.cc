// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay_dot.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/dot_tensors.h"
#include "cli/printable.h"
#include "cli/progress.h"
#include "model/safetensors_writer.h"
#include "sim/sha256.h"
#include "sim/units/dot.h"
#include "softfloat/formats.h"
#include "softfloat/text.h"

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

/// Rows that differ from the expected ones.
struct Comparison {
  std::size_t mismatches = 0;
  std::size_t first = 0;  ///< only where there is one
};

Comparison compare(const std::vector<Bits>& found, const std::vector<Bits>& expected) {
  Comparison out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;
    if (out.mismatches++ == 0) out.first = i;
  }
  return out;
}

std::string code_text(const Format& format, Bits code) {
  return fmt::format("{} ({})", softfloat::to_bits_text(format, code),
                     softfloat::to_decimal(format, code));
}

Json code_json(const Format& format, Bits code) {
  Json out = Json::object();
  out["bits"] = softfloat::to_bits_text(format, code);
  out["hex_float"] = softfloat::to_hex_float(format, code);
  out["decimal"] = softfloat::to_decimal(format, code);
  return out;
}

Result<std::string> needed(const ParsedOptions& options, std::string_view option,
                           std::string_view accepted) {
  if (const auto text = options.value(option)) return *text;
  return Error{ErrorKind::usage,
               fmt::format("replay dot has no {}; {} is accepted", option, accepted)};
}

/// Writes the results as tensor d.
std::optional<Error> write_results(const std::string& path, const MatrixUnit& unit,
                                   std::span<const std::byte> bytes, std::size_t rows) {
  Tensor tensor;
  tensor.name = "d";
  for (const DtypeInfo& row : dtypes()) {
    if (row.format == unit.output) tensor.dtype = row.dtype;
  }
  tensor.shape = {static_cast<std::int64_t>(rows)};
  tensor.bytes = bytes;
  const std::vector<MetadataEntry> metadata{{"unit", to_string(unit)}};
  const auto written = write_safetensors(path, std::span(&tensor, 1), metadata);
  if (!written) return written.error();
  return std::nullopt;
}

/// What both forms of the answer say: the operands, the digest, no comparison yet.
Report replay_report(const MatrixUnit& unit, const DotTensors& tensors, const std::string& path,
                     const std::string& digest) {
  Report report;
  report.schema = "kvsim.replay/1";
  report.command = "replay dot";
  report.input = Json::object();
  report.input["operator"] = "dot";
  report.input["unit"] = to_string(unit);
  report.input["tensors"] = printable(path, path.size());
  report.input["expect"] = nullptr;
  report.result = Json::object();
  report.result["rows"] = tensors.rows;
  report.result["k"] = tensors.k;
  report.result["format"] = softfloat::format_name(unit.output);
  report.result["sha256"] = digest;
  report.result["mismatches"] = nullptr;
  report.result["first"] = nullptr;
  report.headline = fmt::format("Replayed {} row{}.", tensors.rows, tensors.rows == 1 ? "" : "s");
  Table facts;
  facts.show_headings = false;
  facts.columns = {{"fact", "fact", "", Align::left}, {"value", "value", "", Align::left}};
  facts.rows = {{Cell("unit"), Cell(fmt::format("{} ({}, {})", to_string(unit),
                                                to_string(unit.operation), unit.instruction))},
                {Cell("rows"), Cell(fmt::format("{}", tensors.rows))},
                {Cell("K"), Cell(fmt::format("{}", tensors.k))},
                {Cell("sha256"), Cell(digest)}};
  report.tables.push_back(std::move(facts));
  return report;
}

/// Adds what the comparison with the tensor `name` found.
void add_comparison(Answer& answer, const Format& format, const std::vector<Bits>& results,
                    const std::vector<Bits>& expected, const std::string& name) {
  Report& report = answer.report;
  Table& facts = report.tables.front();
  const Comparison found = compare(results, expected);
  report.input["expect"] = name;
  report.result["mismatches"] = found.mismatches;
  facts.rows.push_back({Cell("mismatches"), Cell(fmt::format("{}", found.mismatches))});
  if (found.mismatches == 0) {
    report.headline = results.size() == 1
                          ? fmt::format("The row equals {} bit for bit.", name)
                          : fmt::format("All {} rows equal {} bit for bit.", results.size(), name);
    return;
  }
  const Bits got = results[found.first];
  const Bits wanted = expected[found.first];
  const std::string differ =
      fmt::format("{} of {} rows differ from {}", found.mismatches, results.size(), name);
  const std::string first = fmt::format("row {}: found {}, expected {}", found.first,
                                        code_text(format, got), code_text(format, wanted));
  report.headline = differ + ".";
  report.result["first"] = Json::object();
  report.result["first"]["row"] = found.first;
  report.result["first"]["found"] = code_json(format, got);
  report.result["first"]["expected"] = code_json(format, wanted);
  facts.rows.push_back({Cell("first"), Cell(first)});
  answer.exit_code = ExitCode::check_failed;
  answer.complaint = fmt::format("{}; the first is {}", differ, first);
}

}  // namespace

Result<Answer> replay_dot(const ParsedOptions& options) {
  const Result<std::string> name = needed(
      options, "--unit", "--unit NAME, such as --unit h100.f16.f32 (kvsim kernels --units),");
  if (!name) return name.error();
  const Result<MatrixUnit> unit = parse_matrix_unit(*name);
  if (!unit) {
    return Error{unit.error().kind, fmt::format("--unit: {}", unit.error().message)};
  }
  const Result<std::string> path =
      needed(options, "--tensors", "--tensors FILE, a safetensors file with a, b and c,");
  if (!path) return path.error();
  const std::optional<std::string> expect = options.value("--expect");
  const Result<DotTensors> tensors = read_dot_tensors(*path, *unit, expect);
  if (!tensors) return tensors.error();

  std::vector<Bits> results(tensors->rows);
  {
    Progress progress("replay dot", options);
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i] = unit_dot(*unit, tensors->row(i));
      if (i % 1024 == 0) {
        progress.show(static_cast<double>(i) / static_cast<double>(results.size()));
      }
    }
  }
  const std::vector<std::byte> bytes = little_endian(unit->output, results);
  const std::string digest = sha256(bytes);
  const std::optional<std::string> out = options.value("--out");
  if (out) {
    if (const auto error = write_results(*out, *unit, bytes, results.size())) return *error;
  }

  Answer answer;
  answer.report = replay_report(*unit, *tensors, *path, digest);
  const std::optional<std::vector<Bits>>& expected = tensors->expect;
  if (expect && expected) {
    add_comparison(answer, unit->output, results, *expected, printable(*expect));
  }
  return answer;
}

}  // namespace kvsim
