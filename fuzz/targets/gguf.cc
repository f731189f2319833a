// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The head of a GGUF file on any bytes: an answer or one line of error, views inside the input, and
// a model whose weights are tensors of the file. The tokenizer is read from the same head.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "fuzz/targets/input.h"
#include "model/gguf_metadata.h"
#include "model/gguf_model.h"
#include "model/gguf_tensors.h"
#include "model/tokenizer_writer.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(error.kind == kvsim::ErrorKind::file);
  require(error.message.starts_with("f: ") && error.message.size() < 4000);
  for (const char character : error.message) require(character != '\n' && character != '\0');
}

template <class Part>
bool inside(const Part& part, std::span<const std::byte> whole) {
  const std::less_equal<> before;  // total, where the built-in operator is not
  const auto* const begin = reinterpret_cast<const std::byte*>(part.data());
  return part.empty() ||
         (before(whole.data(), begin) && before(begin + part.size(), whole.data() + whole.size()));
}

void check_tensors(std::span<const kvsim::GgufTensor> tensors, std::span<const std::byte> input) {
  for (const kvsim::GgufTensor& tensor : tensors) {
    require(inside(tensor.name, input) && inside(tensor.data, input));
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    const auto encodings = kvsim::gguf_encodings();
    const auto row = std::ranges::find(encodings, tensor.encoding, &kvsim::GgufEncoding::name);
    require(row != encodings.end());
    require(std::ssize(tensor.data) == elements / row->elements * row->bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  const auto metadata = kvsim::GgufMetadata::parse(input, "f");
  if (!metadata) {
    check_error(metadata.error());
    return 0;
  }
  require(metadata->bytes() <= size);
  for (const kvsim::GgufEntry& entry : metadata->entries()) {
    require(inside(entry.key, input) && metadata->find(entry.key) != nullptr);
  }
  if (const auto files = kvsim::gguf_tokenizer_files(input, "LlamaTokenizer", "f"); !files) {
    check_error(files.error());
  }
  const auto tensors = kvsim::read_gguf_tensors(input, *metadata, "f");
  if (!tensors) {
    check_error(tensors.error());
    return 0;
  }
  check_tensors(*tensors, input);
  const auto model = kvsim::read_gguf_model(*metadata, *tensors, kvsim::Dtype::bf16, "f");
  if (!model) {
    check_error(model.error());
    return 0;
  }
  for (const kvsim::GgufWeight& weight : model->weights) {
    require(std::ranges::find(*tensors, weight.tensor, &kvsim::GgufTensor::name) != tensors->end());
  }
  return 0;
}
