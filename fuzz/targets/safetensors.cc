// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The safetensors reader on any bytes: an answer or one line of error, spans inside the input, and
// what the writer makes of the content reads back equal.
#include "model/safetensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/targets/input.h"
#include "model/attention_tensors.h"
#include "model/safetensors_writer.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 2000);
  for (const char character : error.message) require(character >= ' ' && character <= '~');
  require(error.message.find("accepted:") != std::string::npos);
}

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  const std::less_equal<> before;  // total, where the built-in operator is not
  return before(whole.data(), part.data()) &&
         before(part.data() + part.size(), whole.data() + whole.size());
}

void check_tensor(const kvsim::SafetensorsFile& file, const kvsim::Tensor& tensor,
                  std::span<const std::byte> input) {
  require(file.find(tensor.name) == &tensor);
  require(inside(tensor.bytes, input));
  const auto size = kvsim::tensor_bytes(tensor.dtype, tensor.shape);
  require(size.has_value());
  require(static_cast<std::uint64_t>(*size) == tensor.bytes.size());
}

void check_round_trip(const kvsim::SafetensorsFile& file) {
  const auto prefix = kvsim::safetensors_prefix(file.tensors(), file.metadata());
  if (!prefix) return check_error(prefix.error());  // longer than the limit once escaped
  std::vector<std::byte> bytes;
  const auto append = [&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(std::as_bytes(std::span(*prefix)));
  for (const kvsim::Tensor& tensor : file.tensors()) append(tensor.bytes);
  const auto again = kvsim::SafetensorsFile::parse(bytes);
  require(again.has_value());
  require(std::ranges::equal(again->tensors(), file.tensors(), [](const auto& a, const auto& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape &&
           std::ranges::equal(a.bytes, b.bytes);
  }));
  require(std::ranges::equal(again->metadata(), file.metadata(), [](const auto& a, const auto& b) {
    return a.key == b.key && a.text == b.text;
  }));
}

void check_attention(kvsim::SafetensorsFile file) {
  const auto attention = kvsim::AttentionTensors::from(std::move(file));
  if (!attention) return check_error(attention.error());
  const kvsim::AttentionSizes& sizes = attention->sizes();
  require(sizes.query_heads % sizes.kv_heads == 0 && sizes.query_len <= sizes.kv_len);
  require(attention->q().size() == sizes.query_heads * sizes.query_len * sizes.head_dim);
  for (const kvsim::CodeView* view : {&attention->k(), &attention->v()}) {
    require(view->size() == sizes.kv_heads * sizes.kv_len * sizes.head_dim);
    require(((*view)[view->size() - 1] & ~attention->format().code_mask()) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  auto file = kvsim::SafetensorsFile::parse(input);
  if (!file) {
    check_error(file.error());
    require(file.error().kind == kvsim::ErrorKind::file);
    return 0;
  }
  for (const kvsim::Tensor& tensor : file->tensors()) check_tensor(*file, tensor, input);
  check_round_trip(*file);
  check_attention(std::move(*file));
  return 0;
}
