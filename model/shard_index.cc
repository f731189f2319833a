// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/json_tree.h"
#include "model/quote.h"

namespace kvsim {
namespace {

using nlohmann::json;

constexpr std::string_view ending = ".safetensors";

bool is_plain_name(std::string_view name) {
  return name.size() > ending.size() && name.size() <= ShardIndexLimits::file_name_bytes &&
         name.ends_with(ending) && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

/// What is wrong with the weight map. Empty: it was taken over.
std::string take_map(const json& map, ShardIndex& index) {
  for (const auto& [tensor, file] : map.items()) {
    const auto* name = file.get_ptr<const std::string*>();
    if (name == nullptr || !is_plain_name(*name)) {
      return fmt::format(
          "weight_map: tensor {} stands in {}; accepted: the name of a file of this folder that "
          "ends in {}, at most {} bytes",
          quote(tensor),
          name == nullptr ? fmt::format("a value of type {}", file.type_name()) : quote(*name),
          ending, ShardIndexLimits::file_name_bytes);
    }
    index.files.push_back(*name);
    index.entries.push_back({tensor, 0});
  }
  const std::vector<std::string> file_of = index.files;
  std::ranges::sort(index.files);
  const auto repeated = std::ranges::unique(index.files);
  index.files.erase(repeated.begin(), repeated.end());
  if (index.files.empty() || index.files.size() > ShardIndexLimits::files) {
    return fmt::format("weight_map names {} files; accepted: 1 to {}", index.files.size(),
                       ShardIndexLimits::files);
  }
  for (std::size_t i = 0; i < file_of.size(); ++i) {
    const auto found = std::ranges::lower_bound(index.files, file_of[i]);
    index.entries[i].file = static_cast<std::size_t>(found - index.files.begin());
  }
  std::ranges::sort(index.entries, {}, &ShardIndex::Entry::tensor);
  return {};
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(source), problem)};
  };
  if (text.size() > ShardIndexLimits::bytes) {
    return fail(
        fmt::format("has {} bytes; accepted: at most {}", text.size(), ShardIndexLimits::bytes));
  }
  JsonTreeBuilder builder;
  if (const auto problem = build_json_tree(text, builder)) return fail(*problem);
  const auto map = builder.root().find("weight_map");
  if (map == builder.root().end() || !map->is_object()) {
    return fail(fmt::format("weight_map is {}; accepted: an object that gives each tensor's file",
                            map == builder.root().end() ? "missing" : map->type_name()));
  }
  ShardIndex index;
  if (const std::string problem = take_map(*map, index); !problem.empty()) return fail(problem);
  return index;
}

}  // namespace kvsim
