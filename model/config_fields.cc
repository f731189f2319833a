// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

/// A field that changes arithmetic, with the number that says it does not. null, false, 0 and an
/// empty array or object always say so.
struct UnsupportedField {
  std::string_view name;
  double neutral = 0;
};

// Source: configuration classes of transformers (2026-08): mixtures of experts, quantised weights,
// other position rules, factors on residuals, shared caches, sliced projections.
constexpr auto unsupported = std::to_array<UnsupportedField>({
    {"quantization_config"},
    {"quantization"},
    {"compression_config"},
    {"num_local_experts"},
    {"num_experts"},
    {"n_routed_experts"},
    {"num_experts_per_tok"},
    {"moe_intermediate_size"},
    {"kv_lora_rank"},
    {"q_lora_rank"},
    {"partial_rotary_factor", 1},
    {"rope_interleaved"},
    {"pretraining_tp", 1},
    {"attention_multiplier", 1},
    {"residual_multiplier", 1},
    {"embedding_multiplier", 1},
    {"logits_scaling", 1},
    {"use_bidirectional_attention"},
    {"attention_chunk_size"},
    {"num_kv_shared_layers"},
    {"hidden_size_per_layer_input"},
    {"altup_num_inputs"},
    {"use_mrope"},
    {"no_rope_layers"},
});

bool is_neutral(const JsonValue& value, double neutral) {
  if (std::holds_alternative<std::monostate>(value)) return true;
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return *whole == 0 || static_cast<double>(*whole) == neutral;
  }
  if (const auto* number = std::get_if<double>(&value)) return *number == 0 || *number == neutral;
  if (const auto* container = std::get_if<JsonContainer>(&value)) return container->size == 0;
  return false;
}

}  // namespace

ConfigFields::ConfigFields(std::vector<JsonField> fields)
    : fields_(std::move(fields)), used_(fields_.size(), false) {}

void ConfigFields::enter_text_config() {
  for (const JsonField& field : fields_) {
    const auto* container = std::get_if<JsonContainer>(&field.value);
    if (field.path == "text_config" && container != nullptr && !container->is_array) {
      refuse_unsupported();  // quantization_config stands beside text_config
      prefix_ = "text_config.";
      return;
    }
  }
}

bool ConfigFields::has(std::string_view name) const { return value_of(name) != nullptr; }

bool ConfigFields::is_null(std::string_view name) {
  return use(name) == nullptr && find(name) < fields_.size();
}

std::size_t ConfigFields::find(std::string_view name) const {
  const std::string path = prefix_ + std::string(name);
  const auto found = std::ranges::find(fields_, path, &JsonField::path);
  return static_cast<std::size_t>(found - fields_.begin());
}

const JsonValue* ConfigFields::value_of(std::string_view name) const {
  const std::size_t index = find(name);
  if (index == fields_.size()) return nullptr;
  const JsonValue& value = fields_[index].value;
  return std::holds_alternative<std::monostate>(value) ? nullptr : &value;
}

const JsonValue* ConfigFields::use(std::string_view name) {
  const std::size_t index = find(name);
  if (index < fields_.size()) used_[index] = true;
  return value_of(name);
}

void ConfigFields::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

void ConfigFields::wrong(std::string_view name, const JsonValue& value, std::string_view accepted) {
  fail(fmt::format("field {} is {}; accepted: {}", quote(prefix_ + std::string(name)),
                   describe(value), accepted));
}

void ConfigFields::missing(std::string_view name, std::string_view accepted) {
  fail(fmt::format("field {} is missing; accepted: {}", quote(prefix_ + std::string(name)),
                   accepted));
}

std::optional<std::int64_t> ConfigFields::size(std::string_view name, std::int64_t most) {
  const JsonValue* value = use(name);
  if (value == nullptr) return std::nullopt;
  const auto* whole = std::get_if<std::int64_t>(value);
  if (whole != nullptr && *whole >= 1 && *whole <= most) return *whole;
  wrong(name, *value, fmt::format("whole numbers from 1 to {}", most));
  return std::nullopt;
}

std::int64_t ConfigFields::required_size(std::string_view name, std::int64_t most) {
  const auto value = size(name, most);
  if (!value) missing(name, fmt::format("whole numbers from 1 to {}", most));
  return value.value_or(1);
}

std::optional<std::int64_t> ConfigFields::whole(std::string_view name) {
  const JsonValue* value = use(name);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(value);
  if (number != nullptr && *number >= 0) return *number;
  wrong(name, *value, "whole numbers from 0");
  return std::nullopt;
}

std::optional<double> ConfigFields::positive(std::string_view name) {
  const JsonValue* value = use(name);
  if (value == nullptr) return std::nullopt;
  double number = 0;
  if (const auto* real = std::get_if<double>(value)) number = *real;
  if (const auto* integer = std::get_if<std::int64_t>(value)) {
    number = static_cast<double>(*integer);
  }
  if (std::isfinite(number) && number > 0) return number;
  wrong(name, *value, "numbers above 0");
  return std::nullopt;
}

double ConfigFields::required_positive(std::string_view name) {
  const auto value = positive(name);
  if (!value) missing(name, "numbers above 0");
  return value.value_or(1);
}

std::optional<bool> ConfigFields::boolean(std::string_view name) {
  const JsonValue* value = use(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  wrong(name, *value, "true, false");
  return std::nullopt;
}

std::optional<std::string> ConfigFields::text(std::string_view name) {
  const JsonValue* value = use(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* words = std::get_if<std::string>(value)) return *words;
  wrong(name, *value, "a text");
  return std::nullopt;
}

std::vector<std::string> ConfigFields::texts(std::string_view name) {
  std::vector<std::string> list;
  const JsonValue* value = use(name);
  if (value == nullptr) return list;
  const auto* container = std::get_if<JsonContainer>(value);
  if (container == nullptr || !container->is_array) {
    wrong(name, *value, "an array of texts");
    return list;
  }
  const std::string first = fmt::format("{}{}[", prefix_, name);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!fields_[i].path.starts_with(first)) continue;
    used_[i] = true;
    const auto* words = std::get_if<std::string>(&fields_[i].value);
    if (words == nullptr) {
      fail(fmt::format("field {} is {}; accepted: a text", quote(fields_[i].path),
                       describe(fields_[i].value)));
      return {};
    }
    list.push_back(*words);
  }
  return list;
}

std::vector<std::int64_t> ConfigFields::token_ids(std::string_view name) {
  constexpr std::int64_t most = 256;
  constexpr std::string_view accepted = "a token id, or an array of at most 256 of them";
  const JsonValue* value = value_of(name);
  if (value == nullptr) return {};
  std::vector<std::string> names;
  if (std::holds_alternative<std::int64_t>(*value)) {
    names.emplace_back(name);
  } else {
    const auto* container = std::get_if<JsonContainer>(value);
    if (container == nullptr || !container->is_array || container->size > most) {
      wrong(name, *value, accepted);
      return {};
    }
    for (std::int64_t i = 0; i < container->size; ++i)
      names.push_back(fmt::format("{}[{}]", name, i));
  }
  std::vector<std::int64_t> ids;
  for (const std::string& each : names) {
    const JsonValue* member = value_of(each);
    const auto* id = member == nullptr ? nullptr : std::get_if<std::int64_t>(member);
    if (id == nullptr) {
      wrong(each, member == nullptr ? JsonValue() : *member, "a token id");
      return {};
    }
    if (*id >= 0) ids.push_back(*id);
  }
  return ids;
}

std::int64_t ConfigFields::unused_size(std::string_view name) {
  const JsonValue* value = value_of(name);
  if (value == nullptr) return 0;
  const auto* whole = std::get_if<std::int64_t>(value);
  if (whole != nullptr && *whole >= 1) return *whole;
  wrong(name, *value, "whole numbers from 1");
  return 0;
}

void ConfigFields::refuse_unsupported() {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    for (const UnsupportedField& row : unsupported) {
      if (fields_[i].path != prefix_ + std::string(row.name)) continue;
      used_[i] = true;
      if (is_neutral(fields_[i].value, row.neutral)) continue;
      fail(
          fmt::format("field {} is {}, which changes arithmetic in a way that is not supported; "
                      "accepted: no such field, or null",
                      quote(fields_[i].path), describe(fields_[i].value)));
    }
  }
}

std::vector<std::string> ConfigFields::unused() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::string& path = fields_[i].path;
    const bool inside = path.starts_with(prefix_);
    const std::size_t begin = inside ? prefix_.size() : 0;
    const bool outermost = path.find_first_of(".[", begin) == std::string::npos;
    const bool is_entered = !prefix_.empty() && path + "." == prefix_;
    const bool of_entered_part = inside || !path.starts_with("text_config");
    if (used_[i] || !outermost || is_entered || !of_entered_part) continue;
    // An object or array counts as used where one of its members is.
    bool member_used = false;
    for (std::size_t j = i + 1; j < fields_.size() && !member_used; ++j) {
      const std::string& member = fields_[j].path;
      member_used = used_[j] && (member.starts_with(path + ".") || member.starts_with(path + "["));
    }
    if (!member_used) names.push_back(path);
  }
  return names;
}

}  // namespace kvsim
