// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/property.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include "fuzz/property/draw.h"
#include "fuzz/property/groups.h"
#include "sim/sum.h"
#include "softfloat/formats.h"
#include "softfloat/suggest.h"

namespace kvsim::fuzz {
namespace {

/// Does not hold in about every second run: that it fails shows that a violation is seen.
Violation order_matters_not(PropertyInput& input) {
  constexpr std::int64_t terms = 8;
  const softfloat::Format& half = softfloat::binary16;
  const Factors factors = draw_factors(input.random, half, terms, {.lowest = -1, .highest = 0});
  const auto sum = [&](OrderKind kind) {
    const Order order{{{.kind = kind}}};
    return sum_products(order, Product::rounded, half, half, factors.a, factors.b).bits;
  };
  const softfloat::Bits in_sequence = sum(OrderKind::sequential);
  const softfloat::Bits in_pairs = sum(OrderKind::pairwise);
  if (in_sequence == in_pairs) return std::nullopt;
  return fmt::format("{}: {} in sequence, {} in pairs", to_text(factors),
                     code_text(half, in_sequence), code_text(half, in_pairs));
}

constexpr auto canary = std::to_array<Property>({
    {"canary", "a dot product of 8 terms in binary16 has the same bits in sequence and in pairs",
     "wrong on purpose", order_matters_not, true},
});

/// FNV-1a: what makes the inputs of two properties independent, wherever they stand in the table.
std::uint64_t stream_of(std::string_view name, std::int64_t run) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return (std::uint64_t{hash} << 32U) | static_cast<std::uint64_t>(run);
}

/// What a message may repeat of a file: printable ASCII, cut.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 64)) result += c >= ' ' && c <= '~' ? c : '?';
  return result;
}

Error wrong_line(int line, std::string_view found, std::string_view accepted) {
  return {ErrorKind::file,
          fmt::format("line {}: '{}' stands where {} is accepted", line, shown(found), accepted)};
}

/// The lines of a case, one after the other, comments and empty lines left out.
class CaseLines {
 public:
  explicit CaseLines(std::string_view text) : rest_(text) {}

  /// The next line; empty at the end.
  std::string_view next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!line.empty() && line.front() != '#') return line;
    }
    ++number_;
    return {};
  }
  /// What follows "KEY " on the next line.
  Result<std::string_view> value_of(std::string_view key) {
    const std::string_view line = next();
    if (line.starts_with(key) && line.size() > key.size() + 1 && line[key.size()] == ' ') {
      return line.substr(key.size() + 1);
    }
    return wrong_line(number_, line, fmt::format("'{} …'", key));
  }
  Result<std::uint64_t> number_of(std::string_view key, std::uint64_t most) {
    const auto text = value_of(key);
    if (!text) return text.error();
    std::uint64_t value = 0;
    const char* const last = text->data() + text->size();
    const auto [end, failure] = std::from_chars(text->data(), last, value);
    if (failure == std::errc() && end == last && value <= most) return value;
    return wrong_line(number_, *text, fmt::format("a number from 0 to {}", most));
  }
  [[nodiscard]] Error here(const Error& error) const {
    return {ErrorKind::file, fmt::format("line {}: {}", number_, error.message)};
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

}  // namespace

std::span<const Property> properties() {
  static const std::vector<Property> all = [] {
    std::vector<Property> rows;
    for (const auto& group : {arithmetic_properties(), sum_properties(), unit_properties(),
                              attention_properties(), decoder_properties(), run_properties(),
                              text_properties(), std::span<const Property>(canary)}) {
      rows.insert(rows.end(), group.begin(), group.end());
    }
    return rows;
  }();
  return all;
}

Result<const Property*> find_property(std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(properties().size());
  for (const Property& property : properties()) {
    if (property.name == name) return &property;
    names.push_back(property.name);
  }
  const std::string_view near = softfloat::nearest(name, names);
  return Error{
      ErrorKind::usage,
      fmt::format("property '{}'; accepted: the names that kvsim fuzz property list "
                  "prints{}",
                  shown(name), near.empty() ? "" : fmt::format(" (did you mean {}?)", near))};
}

PropertyTally run_property(const Property& property, const PropertyRuns& runs,
                           const std::function<bool()>& go_on) {
  PropertyTally tally;
  for (std::int64_t i = 0; i < runs.count; ++i) {
    PropertyInput input{Random({runs.seed, stream_of(property.name, runs.first + i), 0}),
                        runs.plant};
    tally.violation = property.check(input);
    ++tally.runs;
    if (tally.violation || (go_on && !go_on())) break;
  }
  return tally;
}

std::string to_text(const PropertyCase& run, std::string_view reason) {
  std::string plant;
  if (run.plant != Plant::none) plant = fmt::format("plant {}\n", kvsim::to_string(run.plant));
  return fmt::format("{}\n# {}\nproperty {}\nseed {}\nrun {}\n{}end\n", property_case_line, reason,
                     run.property, run.seed, run.run, plant);
}

Result<PropertyCase> parse_property_case(std::string_view text) {
  CaseLines lines(text);
  const std::string_view first = lines.next();
  if (first != property_case_line) return wrong_line(lines.number(), first, property_case_line);
  PropertyCase result;
  const auto name = lines.value_of("property");
  if (!name) return name.error();
  const auto property = find_property(*name);
  if (!property) return lines.here(property.error());
  result.property = *name;
  const auto seed = lines.number_of("seed", std::numeric_limits<std::uint64_t>::max());
  if (!seed) return seed.error();
  result.seed = *seed;
  const auto run = lines.number_of("run", most_property_runs);
  if (!run) return run.error();
  result.run = static_cast<std::int64_t>(*run);
  std::string_view line = lines.next();
  if (line.starts_with("plant ")) {
    const auto plant = find_plant(line.substr(6));
    if (!plant) return lines.here(plant.error());
    result.plant = *plant;
    line = lines.next();
  }
  if (line != "end") return wrong_line(lines.number(), line, "end");
  if (const std::string_view behind = lines.next(); !behind.empty()) {
    return wrong_line(lines.number(), behind, "nothing");
  }
  return result;
}

}  // namespace kvsim::fuzz
