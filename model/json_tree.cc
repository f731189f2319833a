// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/json_tree.h"

#include <fmt/format.h>

#include <utility>

#include "model/quote.h"

namespace kvsim {

using nlohmann::json;

bool JsonTreeBuilder::refuse(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
  return false;
}

bool JsonTreeBuilder::key(string_t& name) {
  key_ = name;
  if (!levels_.empty() && levels_.back()->contains(name)) {
    return refuse(fmt::format("key {} stands twice; accepted: once", quote(name)));
  }
  return true;
}

bool JsonTreeBuilder::add(json value) {
  if (++values_ > JsonTreeLimits::values) {
    return refuse(
        fmt::format("more than {} values; accepted: at most that", JsonTreeLimits::values));
  }
  if (levels_.empty()) {
    root_ = std::move(value);
    return true;
  }
  json& parent = *levels_.back();
  if (parent.is_array()) {
    parent.push_back(std::move(value));
  } else {
    parent[key_] = std::move(value);
  }
  return true;
}

bool JsonTreeBuilder::open(json value) {
  if (levels_.size() >= JsonTreeLimits::depth) {
    return refuse(
        fmt::format("nested deeper than {}; accepted: at most that", JsonTreeLimits::depth));
  }
  if (!add(std::move(value))) return false;
  if (levels_.empty()) {
    levels_.push_back(&root_);
  } else {
    json& parent = *levels_.back();
    levels_.push_back(parent.is_array() ? &parent.back() : &parent[key_]);
  }
  return true;
}

bool JsonTreeBuilder::close() {
  levels_.pop_back();
  return true;
}

bool JsonTreeBuilder::parse_error(std::size_t position, const std::string& /*token*/,
                                  const json::exception& /*failure*/) {
  return refuse(fmt::format("byte {} is not JSON; accepted: one JSON object in UTF-8", position));
}

std::optional<std::string> build_json_tree(std::string_view text, JsonTreeBuilder& builder) {
  // The JSON parser takes a zero byte for the end and would never see what follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return fmt::format("byte {} is zero; accepted: one JSON object in UTF-8", zero + 1);
  }
  if (!json::sax_parse(text.begin(), text.end(), &builder)) return builder.problem();
  if (!builder.root().is_object()) return "is no JSON object; accepted: one JSON object";
  return std::nullopt;
}

}  // namespace kvsim
