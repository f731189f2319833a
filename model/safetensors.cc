// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/safetensors.h"

#include <algorithm>
#include <utility>

namespace kvsim {

SafetensorsFile::SafetensorsFile(std::string path, MappedFile mapping, SafetensorsContent content)
    : path_(std::move(path)), mapping_(std::move(mapping)), content_(std::move(content)) {}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  Result<MappedFile> mapping = MappedFile::open(path);
  if (!mapping) return mapping.error();
  Result<SafetensorsContent> content = parse_safetensors(mapping->bytes(), path);
  if (!content) return content.error();
  return SafetensorsFile(path, std::move(*mapping), std::move(*content));
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes,
                                               std::string_view source) {
  Result<SafetensorsContent> content = parse_safetensors(bytes, source);
  if (!content) return content.error();
  return SafetensorsFile(std::string(source), MappedFile{}, std::move(*content));
}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto name_of = [this](std::uint32_t index) -> std::string_view {
    return content_.tensors[index].name;
  };
  const auto found = std::ranges::lower_bound(content_.by_name, name, {}, name_of);
  if (found == content_.by_name.end() || name_of(*found) != name) return nullptr;
  return &content_.tensors[*found];
}

}  // namespace kvsim
