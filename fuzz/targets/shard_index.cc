// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The reader of model.safetensors.index.json on any text: an answer or one line of error, sorted
// plain file names, and every tensor in one of them.
#include "model/shard_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "fuzz/targets/input.h"

namespace {

using kvsim::targets::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = kvsim::parse_shard_index(text, "index");
  if (!index) {
    const kvsim::Error& error = index.error();
    require(error.kind == kvsim::ErrorKind::file && error.message.size() < 2000);
    for (const char character : error.message) require(character >= ' ' && character <= '~');
    require(error.message.find("accepted:") != std::string::npos);
    return 0;
  }
  using Limits = kvsim::ShardIndexLimits;
  require(!index->files.empty() && index->files.size() <= Limits::files);
  // Strictly rising: sorted, and each once.
  require(std::ranges::adjacent_find(index->files, std::greater_equal()) == index->files.end());
  for (const std::string& name : index->files) {
    require(name.size() <= Limits::file_name_bytes && name.ends_with(".safetensors"));
    require(name.find('/') == std::string::npos && name.find('\0') == std::string::npos);
  }
  require(!index->entries.empty());
  using Entry = kvsim::ShardIndex::Entry;
  require(std::ranges::adjacent_find(index->entries, std::greater_equal(), &Entry::tensor) ==
          index->entries.end());
  for (const Entry& entry : index->entries) require(entry.file < index->files.size());
  return 0;
}
