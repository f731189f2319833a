// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "model/quote.h"
#include "model/safetensors_sax.h"

namespace kvsim {
namespace {

constexpr std::size_t length_bytes = 8;

Error file_error(std::string message) { return Error{ErrorKind::file, std::move(message)}; }

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t index = bytes.size(); index > 0; --index) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[index - 1]);
  }
  return value;
}

/// Where a text, or what stands between two texts, is longer than the limit. The JSON parser holds
/// such a piece in memory several times over, so it must not see one.
std::optional<std::size_t> oversized_piece(std::string_view header) {
  std::size_t begin = 0;
  bool in_text = false;
  for (std::size_t index = 0; index < header.size(); ++index) {
    if (index - begin > SafetensorsLimits::text_bytes) return begin;
    const char character = header[index];
    if (in_text && character == '\\') {
      ++index;
    } else if (character == '"') {
      in_text = !in_text;
      begin = index + 1;
    }
  }
  return std::nullopt;
}

/// The header's text without its padding, or an Error without the file's name.
Result<std::string_view> header_text(std::span<const std::byte> file) {
  if (file.size() < length_bytes) {
    return file_error(fmt::format(
        "has {} bytes; accepted: a safetensors file, which has at least 10", file.size()));
  }
  const std::uint64_t length = little_endian(file.first(length_bytes));
  const std::uint64_t rest = file.size() - length_bytes;
  if (length < 2 || length > rest || length > SafetensorsLimits::header_bytes) {
    return file_error(fmt::format(
        "the header length is {} and {} bytes follow; accepted: from 2 to what follows, "
        "at most {}",
        length, rest, SafetensorsLimits::header_bytes));
  }
  const std::span<const std::byte> bytes =
      file.subspan(length_bytes, static_cast<std::size_t>(length));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.front() != '{') {
    return file_error(
        fmt::format("the header begins with {}; accepted: \"{{\"", quote(text.substr(0, 1))));
  }
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  // The JSON parser takes a zero byte for the end and would never see what follows it.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return file_error(fmt::format(
        "the header has a zero byte at its byte {}; accepted: one JSON object in UTF-8", zero + 1));
  }
  if (const auto begin = oversized_piece(text)) {
    return file_error(
        fmt::format("the header has a text or gap longer than {0} bytes at its byte "
                    "{1}; accepted: at most {0}",
                    SafetensorsLimits::text_bytes, *begin + 1));
  }
  return text;
}

/// Sorts tensors and offsets by the place of their data; equal places keep the header's order.
std::vector<DataOffsets> sort_by_data(std::vector<Tensor>& tensors,
                                      const std::vector<DataOffsets>& offsets) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {},
                    [&](std::uint32_t index) { return std::pair(offsets[index], index); });
  std::vector<Tensor> sorted_tensors;
  std::vector<DataOffsets> sorted_offsets;
  sorted_tensors.reserve(order.size());
  sorted_offsets.reserve(order.size());
  for (const std::uint32_t index : order) {
    sorted_tensors.push_back(std::move(tensors[index]));
    sorted_offsets.push_back(offsets[index]);
  }
  tensors = std::move(sorted_tensors);
  return sorted_offsets;
}

/// Gives every tensor its bytes, or says which one does not fit. Empty: all fit.
std::string place_data(std::vector<Tensor>& tensors, const std::vector<DataOffsets>& offsets,
                       std::span<const std::byte> data) {
  std::uint64_t next = 0;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    Tensor& tensor = tensors[index];
    const std::uint64_t begin = offsets[index][0];
    const std::uint64_t end = offsets[index][1];
    const auto where = [&] {
      return fmt::format("tensor {}: data_offsets [{}, {}]", quote(tensor.name), begin, end);
    };
    if (begin > end) return where() + " begin after their end; accepted: begin at most end";
    if (end > data.size()) {
      return fmt::format("{} pass the end of the data; accepted: at most {} (is the file cut off?)",
                         where(), data.size());
    }
    if (begin != next) {
      return fmt::format("{} {}; accepted: begin {}", where(),
                         begin < next ? "overlap another tensor" : "leave a gap", next);
    }
    const Result<std::int64_t> size = tensor_bytes(tensor.dtype, tensor.shape);
    if (!size) return fmt::format("tensor {}: {}", quote(tensor.name), size.error().message);
    if (end - begin != static_cast<std::uint64_t>(*size)) {
      return fmt::format("{} hold {} bytes; accepted: {} for {} {}", where(), end - begin, *size,
                         dtype_info(tensor.dtype).name, shape_text(tensor.shape));
    }
    tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(*size));
    next = end;
  }
  if (next != data.size()) {
    return fmt::format("the data has {} bytes; accepted: {}, where the last tensor ends",
                       data.size(), next);
  }
  return {};
}

/// The names' order, or the name that stands twice.
Result<std::vector<std::uint32_t>> sort_by_name(const std::vector<Tensor>& tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto name = [&](std::uint32_t index) -> std::string_view { return tensors[index].name; };
  std::ranges::sort(order, {}, name);
  const auto twice = std::ranges::adjacent_find(order, {}, name);
  if (twice != order.end()) {
    return file_error(
        fmt::format("tensor {} stands twice in the header; accepted: once", quote(name(*twice))));
  }
  return order;
}

/// The key that stands twice in the metadata, if any.
std::optional<std::string_view> duplicate_key(const std::vector<MetadataEntry>& metadata) {
  std::vector<std::string_view> keys;
  keys.reserve(metadata.size());
  for (const MetadataEntry& entry : metadata) keys.emplace_back(entry.key);
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  return twice == keys.end() ? std::nullopt : std::optional(*twice);
}

struct HeaderContent {
  SafetensorsContent content;        ///< tensors without their bytes
  std::vector<DataOffsets> offsets;  ///< of each tensor
  std::size_t data_begin = 0;        ///< where the data begins in the file
};

/// Everything that the header says, checked on its own. Errors do not name the file.
Result<HeaderContent> read_header(std::span<const std::byte> file) {
  const Result<std::string_view> text = header_text(file);
  if (!text) return text.error();
  SafetensorsSax sax;
  if (!nlohmann::json::sax_parse(text->begin(), text->end(), &sax)) {
    return file_error(sax.problem());
  }
  HeaderContent header;
  SafetensorsContent& content = header.content;
  content.tensors = std::move(sax.tensors());
  content.metadata = std::move(sax.metadata());
  if (const auto key = duplicate_key(content.metadata)) {
    return file_error(fmt::format("__metadata__ {} stands twice; accepted: once", quote(*key)));
  }
  header.offsets = sort_by_data(content.tensors, sax.offsets());
  Result<std::vector<std::uint32_t>> by_name = sort_by_name(content.tensors);
  if (!by_name) return by_name.error();
  content.by_name = std::move(*by_name);
  header.data_begin =
      length_bytes + static_cast<std::size_t>(little_endian(file.first(length_bytes)));
  return header;
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<std::int64_t> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape) {
  const DtypeInfo& info = dtype_info(dtype);
  const auto problem = [&](std::string_view reason) {
    return file_error(fmt::format("shape {} of {} {}", shape_text(shape), info.name, reason));
  };
  if (shape.size() > SafetensorsLimits::dimensions) {
    return file_error(fmt::format("shape has {} sizes; accepted: at most {}", shape.size(),
                                  SafetensorsLimits::dimensions));
  }
  // Sizes of zero are left out of the product, so that what is too large does not depend on where
  // the zero stands.
  std::int64_t bits = info.bits;
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return problem("has a negative size; accepted: sizes from 0");
    is_empty = is_empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(bits, size, &bits)) {
      return problem("is too large; accepted: at most 2^63 - 1 bits");
    }
  }
  if (is_empty) return std::int64_t{0};
  if (bits % 8 != 0) {
    return problem(fmt::format("has {} bits; accepted: a multiple of 8", bits));
  }
  return bits / 8;
}

Result<bool> check_safetensors_header(std::span<const std::byte> prefix) {
  const Result<HeaderContent> header = read_header(prefix);
  if (!header) return header.error();
  return true;
}

Result<SafetensorsContent> parse_safetensors(std::span<const std::byte> file,
                                             std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return file_error(fmt::format("{}: {}", quote_path(source), problem));
  };
  Result<HeaderContent> header = read_header(file);
  if (!header) return fail(header.error().message);
  SafetensorsContent content = std::move(header->content);
  const std::string problem =
      place_data(content.tensors, header->offsets, file.subspan(header->data_begin));
  if (!problem.empty()) return fail(problem);
  return content;
}

}  // namespace kvsim
