// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/printable.h"
#include "cli/probe/report.h"
#include "cli/probe/request.h"
#include "cli/probe/vectors.h"
#include "cli/progress.h"
#include "sim/exp_models.h"

namespace kvsim {
namespace {

Result<UnitResult> run_unit(const ProbeRequest& request, const ProbedUnit& probed) {
  const auto unit = request.device->unit(probed.unit);
  if (!unit) return unit.error();
  auto probe = gpu::probe_unit(**unit, probed.row, request.options);
  if (!probe) return probe.error();
  UnitResult result{&probed, std::move(*probe), {}};
  if (!request.out) return result;
  result.file = fmt::format("{}/{}.safetensors", *request.out, to_string(probed.unit));
  const auto written =
      write_vectors(result.file, probed.row, result.probe,
                    provenance(request.device->name(), request.device->fingerprint()));
  if (!written) return written.error();
  return result;
}

Result<TableResult> run_table(const ProbeRequest& request, const gpu::ElementaryRow& row) {
  auto table = gpu::capture_table(row, std::min(request.table_bits, row.most_bits),
                                  request.options.seed, [&](std::span<const float> numbers) {
                                    return request.device->compute(row.function, numbers);
                                  });
  if (!table) return table.error();
  TableResult result{&row, std::move(*table), {}, {}};
  if (row.function == gpu::ElementaryFunction::ex2) {
    const auto accepted = make_exp_table(result.table.values);
    if (!accepted) result.problem = accepted.error().message;
  }
  if (!request.out) return result;
  result.file = fmt::format("{}/{}.safetensors", *request.out, row.name);
  const auto written =
      write_table(result.file, row, result.table,
                  provenance(request.device->name(), request.device->fingerprint()));
  if (!written) return written.error();
  return result;
}

Result<bool> make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (!failure) return true;
  return Error{ErrorKind::file,
               fmt::format("cannot make the folder {}: {}", printable(path), failure.message())};
}

Result<Answer> run_probe(const ParsedOptions& options) {
  const auto request = probe_request(options);
  if (!request) return request.error();
  if (const auto& out = request->out; out) {
    const auto made = make_folder(*out);
    if (!made) return made.error();
  }
  Progress progress("probe", options);
  std::vector<UnitResult> units;
  units.reserve(request->units.size());
  for (const ProbedUnit& probed : request->units) {
    progress.show(static_cast<double>(units.size()) / static_cast<double>(request->units.size()));
    auto result = run_unit(*request, probed);
    if (!result) return result.error();
    units.push_back(std::move(*result));
  }
  std::vector<TableResult> tables;
  tables.reserve(request->tables.size());
  for (const gpu::ElementaryRow* row : request->tables) {
    auto result = run_table(*request, *row);
    if (!result) return result.error();
    tables.push_back(std::move(*result));
  }
  return probe_answer(*request, units, tables);
}

}  // namespace

const Command probe_command{
    .name = "probe",
    .summary = "what a GPU's matrix unit really computes, beside what the table says of it",
    .synopsis = "--device cuda|sim [--unit NAME] [--table NAME] [--out DIR]",
    .description =
        "Executes single instructions on operands made for one question each: which products\n"
        "share a rounding, how many bits a sum keeps, how it rounds, with which exponent a zero\n"
        "takes part, what becomes of subnormal numbers, NaN and infinities. What is seen stands\n"
        "beside the row of the table (kvsim kernels --units), and every result beside what the\n"
        "simulator computes for it. --table captures the results of an instruction for every\n"
        "input that counts; ex2 is what --exp-table of kvsim replay takes.\n"
        "\n"
        "--device sim probes the simulator's own units: it finds what the table declares.\n"
        "Exit 1: a unit is not what the table says; 5: no GPU, or no such instruction on it.",
    .options = probe_option_rows(),
    .examples =
        "  kvsim probe --device cuda --table ex2 --unit all --out h200\n"
        "  kvsim probe --device sim --unit h100.wgmma.e4m3.f32",
    .run = run_probe,
};

}  // namespace kvsim
