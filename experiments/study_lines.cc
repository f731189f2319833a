// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/study_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "experiments/study_file.h"
#include "model/quote.h"
#include "softfloat/sha256.h"

namespace kvsim::experiments {
namespace {

constexpr std::uint64_t most_units = std::uint64_t{1} << 24U;

Error file_error(std::string message) { return {ErrorKind::file, std::move(message)}; }

/// The object that a line is.
Result<Json> object_of(std::string_view line) {
  Json object = Json::parse(line, nullptr, false);
  if (object.is_object()) return object;
  return file_error(fmt::format("{}; accepted: a JSON object", quote(line)));
}

/// A field that is a whole number from 0 to `most`.
Result<std::uint64_t> count_of(const Json& object, const char* field, std::uint64_t most) {
  const auto found = object.find(field);
  if (found != object.end() && found->is_number_unsigned() && found->get<std::uint64_t>() <= most) {
    return found->get<std::uint64_t>();
  }
  return file_error(fmt::format("field \"{}\" is {}; accepted: 0 to {}", field,
                                found == object.end() ? "not there" : quote(found->dump()), most));
}

/// What decides whether two runs have the same prompts: the numbers, and a digest of the token ids.
Json prompts_of(const StudySetup& setup) {
  std::vector<std::int64_t> numbers;
  std::string ids;
  numbers.reserve(setup.prompts.size());
  for (const StudyPrompt& each : setup.prompts) {
    numbers.push_back(each.prompt.number);
    for (const TokenId id : each.prompt.ids) ids += fmt::format("{} ", id);
    ids += fmt::format("\n{}\n", each.answer);
  }
  return {{"numbers", numbers}, {"sha256", sha256(std::as_bytes(std::span(ids)))}};
}

}  // namespace

std::string line_of(const Json& object) {
  return object.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Json head_of(std::string_view study, const StudySetup& setup, std::span<const StudyUnit> units) {
  Json strategies = Json::array();
  for (const Strategy& strategy : setup.strategies) {
    strategies.push_back({{"name", strategy.name}, {"rule", to_text(strategy.sampling)}});
  }
  return {{"schema", study_schema},
          {"study", study},
          {"version", setup.version},
          {"engine", setup.engine->name()},
          {"model", setup.engine->model()},
          {"model_sha256", setup.engine->model_sha256()},
          {"storage", setup.engine->storage()},
          {"on", to_text(setup.on)},
          {"off", to_text(setup.off)},
          {"strategies", strategies},
          {"seeds", setup.seeds},
          {"new_tokens", setup.new_tokens},
          {"stops", setup.stops},
          {"prompts", prompts_of(setup)},
          {"units", units.size()}};
}

std::string unit_line(std::size_t index, const StudyUnit& unit, Json values) {
  return line_of({{"unit", index},
                  {"part", unit.part},
                  {"prompt", unit.prompt},
                  {"seed", unit.seed},
                  {"values", std::move(values)}});
}

Result<StudyHead> parse_head_line(std::string_view line) {
  Result<Json> object = object_of(line);
  if (!object) return object.error();
  const auto schema = object->find("schema");
  if (schema == object->end() || *schema != study_schema) {
    return file_error(fmt::format("field \"schema\" is {}; accepted: {}",
                                  schema == object->end() ? "not there" : quote(schema->dump()),
                                  study_schema));
  }
  for (const char* field : {"study", "version", "engine", "model", "storage", "on", "off"}) {
    const auto found = object->find(field);
    if (found == object->end() || !found->is_string()) {
      return file_error(fmt::format("field \"{}\" is no text; accepted: a text", field));
    }
  }
  const Result<std::uint64_t> units = count_of(*object, "units", most_units);
  if (!units) return units.error();
  return StudyHead{std::move(*object), static_cast<std::size_t>(*units)};
}

Result<StudyLine> parse_unit_line(std::string_view line) {
  Result<Json> object = object_of(line);
  if (!object) return object.error();
  const Result<std::uint64_t> index = count_of(*object, "unit", most_units);
  if (!index) return index.error();
  const Result<std::uint64_t> prompt = count_of(*object, "prompt", most_units);
  if (!prompt) return prompt.error();
  const Result<std::uint64_t> seed = count_of(*object, "seed", UINT64_MAX);
  if (!seed) return seed.error();
  const auto part = object->find("part");
  const auto values = object->find("values");
  if (part == object->end() || !part->is_string()) {
    return file_error("field \"part\" is no text; accepted: a text");
  }
  if (values == object->end()) return file_error("field \"values\" is not there");
  StudyLine result;
  result.index = static_cast<std::size_t>(*index);
  result.unit.unit.part = part->get<std::string>();
  result.unit.unit.prompt = static_cast<std::int64_t>(*prompt);
  result.unit.unit.seed = *seed;
  result.unit.values = std::move(*values);
  return result;
}

}  // namespace kvsim::experiments
