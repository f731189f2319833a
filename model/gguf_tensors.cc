// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/gguf_reader.h"
#include "model/quote.h"

namespace kvsim {
namespace {

constexpr auto encodings = std::to_array<GgufEncoding>({
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17},
});

constexpr std::uint32_t most_sizes = 4;
constexpr std::int64_t largest_size = std::int64_t{1} << 32;
constexpr std::uint64_t largest_tensor = std::uint64_t{1} << 48;  // elements

std::string encoding_names() {
  std::string names;
  for (const GgufEncoding& row : encodings) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

/// The place of a tensor's data behind the header.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

bool read_shape(GgufReader& reader, std::vector<std::int64_t>& shape, std::uint64_t& elements) {
  std::uint32_t sizes = 0;
  if (!reader.number(sizes)) return false;
  if (sizes == 0 || sizes > most_sizes) {
    return reader.refuse(fmt::format("{} sizes; accepted: 1 to {}", sizes, most_sizes));
  }
  elements = 1;
  for (std::uint32_t index = 0; index < sizes; ++index) {
    std::uint64_t size = 0;
    if (!reader.number(size)) return false;
    if (size == 0 || size > static_cast<std::uint64_t>(largest_size) ||
        size > largest_tensor / elements) {
      return reader.refuse(
          fmt::format("a size of {}; accepted: 1 to {}, and tensors of at most "
                      "{} elements",
                      size, largest_size, largest_tensor));
    }
    elements *= size;
    shape.push_back(static_cast<std::int64_t>(size));
  }
  std::ranges::reverse(shape);  // the file has the fastest first
  return true;
}

bool read_tensor(GgufReader& reader, GgufTensor& tensor, Extent& extent) {
  if (!reader.text(tensor.name, GgufLimits::key_bytes)) return false;
  reader.set_place(fmt::format("tensor {}", quote(tensor.name)));
  std::uint64_t elements = 0;
  std::uint32_t code = 0;
  if (!read_shape(reader, tensor.shape, elements)) return false;
  if (!reader.number(code) || !reader.number(extent.begin)) return false;
  const auto* row = std::ranges::find(encodings, code, &GgufEncoding::code);
  if (row == encodings.end()) {
    return reader.refuse(
        fmt::format("encoding {} is not known; accepted: {}", code, encoding_names()));
  }
  if (tensor.shape.back() % row->elements != 0) {
    return reader.refuse(fmt::format("rows of {} elements in {}; accepted: multiples of {}",
                                     tensor.shape.back(), row->name, row->elements));
  }
  tensor.encoding = row->name;
  extent.bytes =
      elements / static_cast<std::uint64_t>(row->elements) * static_cast<std::uint64_t>(row->bytes);
  return true;
}

Result<std::uint64_t> alignment_of(const GgufMetadata& metadata, std::string_view source) {
  constexpr std::int64_t usual = 32;
  constexpr std::int64_t most = std::int64_t{1} << 20;
  const auto value = metadata.whole("general.alignment");
  if (!value) return value.error();
  const std::int64_t alignment = value->value_or(usual);
  if (alignment < 1 || alignment > most || (alignment & (alignment - 1)) != 0) {
    return Error{ErrorKind::file,
                 fmt::format("{}: general.alignment is {}; accepted: powers of two up to {}",
                             source, alignment, most)};
  }
  return static_cast<std::uint64_t>(alignment);
}

}  // namespace

std::span<const GgufEncoding> gguf_encodings() { return encodings; }

Result<std::vector<GgufTensor>> read_gguf_tensors(std::span<const std::byte> bytes,
                                                  const GgufMetadata& metadata,
                                                  std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", source, problem)};
  };
  const Result<std::uint64_t> alignment = alignment_of(metadata, source);
  if (!alignment) return alignment.error();
  GgufReader reader(bytes.subspan(metadata.bytes()), source);
  std::vector<GgufTensor> tensors;
  std::vector<Extent> extents;
  for (std::uint64_t index = 0; index < metadata.tensor_count(); ++index) {
    reader.set_place(fmt::format("tensor {} of {}", index + 1, metadata.tensor_count()));
    if (!read_tensor(reader, tensors.emplace_back(), extents.emplace_back())) {
      return reader.error();
    }
  }
  const std::uint64_t header = metadata.bytes() + reader.at();
  const std::uint64_t data = (header + *alignment - 1) / *alignment * *alignment;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const Extent& extent = extents[index];
    const std::uint64_t room = bytes.size() > data ? bytes.size() - data : 0;
    if (extent.begin > room || extent.bytes > room - extent.begin) {
      return fail(
          fmt::format("tensor {} needs {} bytes from byte {} on, and the file has {}; "
                      "accepted: a whole file",
                      quote(tensors[index].name), extent.bytes, extent.begin + data, bytes.size()));
    }
    tensors[index].data = bytes.subspan(data + extent.begin, extent.bytes);
  }
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return fail(fmt::format("tensor {} stands twice; accepted: once", quote(*twice)));
  }
  return tensors;
}

}  // namespace kvsim
