// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/models/imported_report.h"

#include <fmt/format.h>

#include "model/quote.h"

namespace kvsim {
namespace {

std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace

Report imported_report(const GgufFile& file, const ImportedModel& model,
                       const std::string& folder) {
  const ModelConfig& config = file.model().config;
  const std::string dtype = file.dtype() == Dtype::f32 ? "f32" : "bf16";
  Table table;
  table.show_headings = false;
  table.columns = {{"name", "", "", Align::left}, {"value", "", "", Align::left}};
  const auto add = [&](std::string name, std::string value) {
    table.rows.push_back({Cell(std::move(name)), Cell(std::move(value))});
  };
  add("folder", quote_path(folder));
  add("architecture", fmt::format("{}: {} layers, hidden {}, {} query and {} key/value heads of {}",
                                  config.model_type, config.layers, config.hidden,
                                  config.query_heads, config.kv_heads, config.head_dim));
  add("weights", fmt::format("{} in {} tensors ({}), stored as {}", with_commas(model.parameters),
                             file.tensor_names().size(), file.encodings(), dtype));
  add("bytes", with_commas(static_cast<std::int64_t>(model.bytes)));
  add("SHA-256", model.identity);
  Report report;
  report.schema = "kvsim.import/1";
  report.tables = {std::move(table)};
  report.input = {{"file", file.path()}, {"dtype", dtype}};
  report.result = {{"folder", folder},
                   {"model_type", config.model_type},
                   {"architecture", file.model().architecture->name},
                   {"parameters", model.parameters},
                   {"tensors", file.tensor_names().size()},
                   {"encodings", file.encodings()},
                   {"bytes", model.bytes},
                   {"sha256", model.identity}};
  return report;
}

}  // namespace kvsim
