// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/crosscheck/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/setting.h"
#include "gpu/torch_settings.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

constexpr std::size_t listed_numbers = 64;
constexpr std::size_t listed_failures = 8;

std::string hex(double value) {
  return softfloat::to_hex_float(softfloat::binary32,
                                 softfloat::from_float(static_cast<float>(value)));
}

/// Names of the inputs of an operator.
std::string_view input_name(const gpu::Check& check, std::size_t input) {
  constexpr std::array<std::string_view, 3> attention{"q", "k", "v"};
  if (check.is_attention()) return attention.at(input);
  if (input == 0) return "x";
  if (check.operation == "linear") return "w";
  return check.operation == "rms-norm" ? "weight" : "y";
}

Json failing_json(const gpu::Check& check, const gpu::FailingTensors& failing) {
  Json out = Json::object();
  out["index"] = failing.index;
  out["seen"] = hex(failing.seen);
  out["simulated"] = hex(failing.simulated);
  out["numbers"] = Json::array();
  for (const gpu::FailingNumber& number : failing.numbers) {
    out["numbers"].push_back(Json{{"input", input_name(check, number.input)},
                                  {"index", number.index},
                                  {"value", hex(number.value)}});
  }
  return out;
}

Json case_json(const CrosscheckCase& one, const CrosscheckResult& result) {
  const gpu::Check& check = one.check;
  Json out = Json::object();
  out["operation"] = check.operation;
  out["label"] = check.label;
  out["size"] = gpu::size_text(check);
  out["dtype"] = std::string(softfloat::format_name(check.format));
  out["data"] = one.data;
  if (!result) {
    out["not_compared"] = result.error().message;
    return out;
  }
  out["kernel"] = result->kernel;
  out["compared"] = result->compared;
  out["different"] = result->different;
  if (result->different == 0) return out;
  out["max_ulp"] = result->max_ulp;
  out["first"] = Json{
      {"index", result->first}, {"seen", hex(result->seen)}, {"simulated", hex(result->simulated)}};
  out["suspect"] = result->suspect;
  const std::optional<gpu::FailingTensors>& failing = result->failing;
  out["failing"] = failing ? failing_json(check, *failing) : Json();
  return out;
}

std::string outcome_text(const CrosscheckResult& result) {
  if (!result) {
    return result.error().kind == ErrorKind::unavailable ? "not offered" : "cannot tell";
  }
  if (result->different == 0) return fmt::format("{} equal", result->compared);
  return fmt::format("{} of {} differ", result->different, result->compared);
}

Table cases_table(const CrosscheckRequest& request, const std::vector<CrosscheckResult>& results) {
  Table table;
  table.columns = {{"operation", "operator", "", Align::left}, {"label", "as", "", Align::left},
                   {"size", "size", "", Align::left},          {"data", "data", "", Align::left},
                   {"kernel", "simulated", "", Align::left},   {"result", "bits", "", Align::left}};
  const bool differs = std::ranges::any_of(
      results, [](const CrosscheckResult& result) { return result && result->different > 0; });
  if (differs) {
    table.columns.push_back({"max_ulp", "max error", "ulp", Align::right});
    table.columns.push_back({"first", "first", "", Align::right});
    table.columns.push_back({"suspect", "where", "", Align::left});
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CrosscheckCase& one = request.cases[i];
    const CrosscheckResult& result = results[i];
    std::vector<Cell> row{one.check.operation,
                          one.check.label,
                          gpu::size_text(one.check),
                          one.data,
                          result ? result->kernel : std::string("-"),
                          outcome_text(result)};
    if (differs) {
      const bool here = result && result->different > 0;
      row.emplace_back(here ? fmt::to_string(result->max_ulp) : std::string("-"));
      row.emplace_back(here ? fmt::to_string(result->first) : std::string("-"));
      row.emplace_back(here ? result->suspect : std::string());
    }
    table.rows.push_back(std::move(row));
  }
  std::string last;
  for (const CrosscheckResult& result : results) {
    if (result || result.error().message == last) continue;
    last = result.error().message;
    table.notes.push_back(last);
  }
  return table;
}

Table failing_table(const CrosscheckCase& one, const gpu::FailingTensors& failing) {
  Table table;
  table.title = fmt::format("smallest difference of {} {}, {}, {} data: result {}, other numbers 0",
                            one.check.operation, one.check.label, gpu::size_text(one.check),
                            one.data, failing.index);
  table.columns = {{"input", "input", "", Align::left},
                   {"index", "index", "", Align::right},
                   {"value", "value", "", Align::left}};
  for (const gpu::FailingNumber& number : failing.numbers) {
    if (table.rows.size() == listed_numbers) break;
    table.rows.push_back({Cell(input_name(one.check, number.input)),
                          Cell(fmt::to_string(number.index)), Cell(hex(number.value))});
  }
  if (failing.numbers.size() > listed_numbers) {
    table.notes.push_back(fmt::format("and {} more", failing.numbers.size() - listed_numbers));
  }
  table.notes.push_back(
      fmt::format("seen {}, simulated {}", hex(failing.seen), hex(failing.simulated)));
  return table;
}

Json input_json(const CrosscheckCommon& common) {
  Json out = Json::object();
  out["model"] = common.model;
  out["dtype"] = common.storage;
  out["setting"] = std::string(gpu::current_setting().name);
  out["dispatch"] = std::string(common.dispatch.name());
  out["lines"] = Json::object();
  for (const DispatchLine& line : common.dispatch.lines())
    out["lines"][line.operation] = line.kernel;
  out["seed"] = common.seed;
  return out;
}

}  // namespace

Report crosscheck_report(const CrosscheckRequest& request,
                         const std::vector<CrosscheckResult>& results) {
  std::int64_t compared = 0;
  std::int64_t different = 0;
  std::size_t without = 0;
  for (const CrosscheckResult& result : results) {
    if (!result) {
      ++without;
      continue;
    }
    compared += result->compared;
    different += result->different;
  }
  Report report;
  report.schema = "kvsim.crosscheck/1";
  report.command = "crosscheck";
  const std::string by = request.revealed
                             ? std::string("revealed orders")
                             : fmt::format("dispatch {}", request.common.dispatch.name());
  report.headline =
      fmt::format("{} against {}, {}, {}: {}{}.", request.backend->name(), by, request.common.model,
                  request.common.storage,
                  different == 0 ? fmt::format("all {} results equal to the bit", compared)
                                 : fmt::format("{} of {} results differ", different, compared),
                  without == 0 ? std::string() : fmt::format("; {} checks not compared", without));
  report.tables = {cases_table(request, results)};
  Json cases = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    cases.push_back(case_json(request.cases[i], results[i]));
    if (!results[i]) continue;
    const std::optional<gpu::FailingTensors>& failing = results[i]->failing;
    if (failing && report.tables.size() <= listed_failures) {
      report.tables.push_back(failing_table(request.cases[i], *failing));
    }
  }
  report.input = input_json(request.common);
  report.input["backend"] = request.backend->name();
  report.input["revealed"] = request.revealed;
  Json fingerprint = Json::object();
  for (const auto& [name, value] : request.backend->fingerprint().entries)
    fingerprint[name] = value;
  report.result = Json{{"compared", compared},
                       {"different", different},
                       {"not_compared", without},
                       {"checks", std::move(cases)},
                       {"fingerprint", std::move(fingerprint)}};
  return report;
}

Report end_to_end_report(const EndToEndRequest& request, const gpu::DecoderCheckOutcome& outcome) {
  const gpu::OperatorTotals logits = outcome.totals("logits");
  const gpu::OperatorTotals hidden = outcome.totals("hidden");
  Report report;
  report.schema = "kvsim.crosscheck/1";
  report.command = "crosscheck";
  report.headline = fmt::format(
      "{} in {}, {} attention, {} tokens and {} steps: {} of {} logits and {} of {} hidden numbers "
      "differ.",
      request.common.model, request.common.storage, gpu::to_string(request.options.attention),
      request.options.prefill, request.options.decode, logits.different, logits.compared,
      hidden.different, hidden.compared);
  Table table;
  table.columns = {{"operation", "operator", "", Align::left}, {"result", "bits", "", Align::left}};
  Json operators = Json::array();
  for (const gpu::OperatorTotals& totals : outcome.operators) {
    table.rows.push_back(
        {Cell(totals.operation),
         Cell(totals.different == 0
                  ? fmt::format("{} equal", totals.compared)
                  : fmt::format("{} of {} differ", totals.different, totals.compared))});
    operators.push_back(Json{{"operation", totals.operation},
                             {"compared", totals.compared},
                             {"different", totals.different}});
  }
  if (outcome.first) {
    table.notes.push_back(fmt::format(
        "first difference: pass {}, layer {}, {}, row {}, column {}: seen {}, simulated {}",
        outcome.first->pass, outcome.first->layer, outcome.first->operation, outcome.first->row,
        outcome.first->column, hex(outcome.first->seen), hex(outcome.first->simulated)));
  }
  table.notes.push_back(fmt::format(
      "{} of {} RoPE factors are other than the kernel's; {}", outcome.rope_different,
      outcome.rope_compared,
      request.options.rope_as_data ? "both sides use the back end's" : "each side uses its own"));
  report.tables.push_back(std::move(table));
  report.input = input_json(request.common);
  report.input["backend"] = "torch-cpu";
  report.input["attention"] = std::string(gpu::to_string(request.options.attention));
  report.input["prefill"] = request.options.prefill;
  report.input["decode"] = request.options.decode;
  report.input["rope"] = request.options.rope_as_data ? "backend" : "kernel";
  Json first;
  if (outcome.first) {
    first = Json{{"pass", outcome.first->pass},
                 {"layer", outcome.first->layer},
                 {"operation", outcome.first->operation},
                 {"row", outcome.first->row},
                 {"column", outcome.first->column},
                 {"seen", hex(outcome.first->seen)},
                 {"simulated", hex(outcome.first->simulated)}};
  }
  report.result = Json{{"passes", outcome.passes},
                       {"operators", std::move(operators)},
                       {"first", std::move(first)},
                       {"rope_compared", outcome.rope_compared},
                       {"rope_different", outcome.rope_different}};
  return report;
}

}  // namespace kvsim
