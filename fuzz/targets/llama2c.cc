// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The reader of llama2.c models on any bytes: an answer or one line of error; weights that stand
// inside the file, one after the other without overlap, and fill it but for the two tables.
#include "model/llama2c.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/targets/input.h"

namespace {

using kvsim::targets::require;

void check_places(const kvsim::Llama2cContent& content, std::span<const std::byte> file) {
  std::vector<std::span<const std::byte>> parts;
  std::size_t total = 28;
  for (const kvsim::Weight& weight : content.weights) {
    require(weight.layer >= -1 && weight.layer < content.config.layers);
    const std::int64_t numbers = weight.rows() * weight.columns();
    require(numbers > 0 && weight.bytes.size() == 4 * static_cast<std::size_t>(numbers));
    parts.push_back(weight.bytes);
    total += weight.bytes.size();
  }
  std::ranges::sort(parts, {}, [](const auto& part) { return part.data(); });
  const std::byte* end = file.data() + 28;
  for (const auto& part : parts) {
    require(part.data() >= end);
    end = part.data() + part.size();
  }
  require(end <= file.data() + file.size());
  const auto tables = static_cast<std::size_t>(content.config.max_positions) *
                      static_cast<std::size_t>(content.config.head_dim) * 4;
  require(total + tables == file.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto content = kvsim::parse_llama2c(file, "model");
  if (content) {
    check_places(*content, file);
    return 0;
  }
  const kvsim::Error& error = content.error();
  require(error.kind == kvsim::ErrorKind::file && error.message.size() < 2000);
  for (const char character : error.message) require(character >= ' ' && character <= '~');
  require(error.message.find("accepted:") != std::string::npos);
  return 0;
}
