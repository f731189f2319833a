// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "model/gguf_reader.h"
#include "model/quote.h"

namespace kvsim {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t bytes;  ///< 0: of no fixed size
};

constexpr std::array<TypeRow, 13> types{{{"uint8", 1},
                                         {"int8", 1},
                                         {"uint16", 2},
                                         {"int16", 2},
                                         {"uint32", 4},
                                         {"int32", 4},
                                         {"float32", 4},
                                         {"bool", 1},
                                         {"string", 0},
                                         {"array", 0},
                                         {"uint64", 8},
                                         {"int64", 8},
                                         {"float64", 8}}};

const TypeRow& row_of(GgufType type) { return types[static_cast<std::size_t>(type)]; }

/// Reads the values of keys, too.
class Reader : public GgufReader {
 public:
  using GgufReader::GgufReader;

  bool type(GgufType& value) {
    std::uint32_t code = 0;
    if (!number(code)) return false;
    if (code >= types.size()) {
      return refuse(fmt::format("type {} is not known; accepted: 0 to {}", code, types.size() - 1));
    }
    value = static_cast<GgufType>(code);
    return true;
  }

  bool value(GgufType type, GgufValue& value);

 private:
  template <class T>
  bool stored(GgufValue& value) {
    T raw = 0;
    if (!number(raw)) return false;
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<double>(raw);
    } else if constexpr (std::is_signed_v<T>) {
      value = std::int64_t{raw};
    } else {
      value = std::uint64_t{raw};
    }
    return true;
  }
  bool boolean(GgufValue& value) {
    std::uint8_t raw = 0;
    if (!number(raw)) return false;
    if (raw > 1) return refuse(fmt::format("bool is {}; accepted: 0 or 1", raw));
    value = raw == 1;
    return true;
  }
  bool array(GgufArray& array);
};

bool Reader::array(GgufArray& array) {
  if (!type(array.item) || !number(array.size)) return false;
  if (array.item == GgufType::array) {
    return refuse("an array in an array; accepted: arrays of numbers or strings");
  }
  if (array.size > GgufLimits::array_items) {
    return refuse(fmt::format("an array of {} items; accepted: at most {}", array.size,
                              GgufLimits::array_items));
  }
  if (array.item != GgufType::text) {
    return take(array.size * row_of(array.item).bytes, array.numbers);
  }
  // Each text has a length of 8 bytes: no more memory than the file has bytes to show for it.
  array.texts.reserve(std::min(array.size, left() / 8));
  for (std::uint64_t index = 0; index < array.size; ++index) {
    std::string_view item;
    if (!text(item, GgufLimits::text_bytes)) return false;
    array.texts.push_back(item);
  }
  return true;
}

bool Reader::value(GgufType type, GgufValue& value) {
  switch (type) {
    case GgufType::uint8:
      return stored<std::uint8_t>(value);
    case GgufType::int8:
      return stored<std::int8_t>(value);
    case GgufType::uint16:
      return stored<std::uint16_t>(value);
    case GgufType::int16:
      return stored<std::int16_t>(value);
    case GgufType::uint32:
      return stored<std::uint32_t>(value);
    case GgufType::int32:
      return stored<std::int32_t>(value);
    case GgufType::float32:
      return stored<float>(value);
    case GgufType::boolean:
      return boolean(value);
    case GgufType::uint64:
      return stored<std::uint64_t>(value);
    case GgufType::int64:
      return stored<std::int64_t>(value);
    case GgufType::float64:
      return stored<double>(value);
    case GgufType::text:
      return text(value.emplace<std::string_view>(), GgufLimits::text_bytes);
    case GgufType::array:
      return array(value.emplace<GgufArray>());
  }
  return refuse("type is not known");
}

bool read_counts(Reader& reader, std::uint64_t& tensors, std::uint64_t& entries) {
  std::span<const std::byte> magic;
  std::uint32_t version = 0;
  if (!reader.take(4, magic)) return false;
  const std::string_view letters(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (letters != "GGUF") {
    return reader.refuse(fmt::format("begins with {}; accepted: \"GGUF\"", quote(letters)));
  }
  if (!reader.number(version)) return false;
  if (version != 2 && version != 3) {
    return reader.refuse(fmt::format("version {}; accepted: 2 and 3, little-endian", version));
  }
  if (!reader.number(tensors) || !reader.number(entries)) return false;
  if (tensors > GgufLimits::tensors || entries > GgufLimits::entries) {
    return reader.refuse(fmt::format("{} tensors and {} key-values; accepted: at most {} and {}",
                                     tensors, entries, GgufLimits::tensors, GgufLimits::entries));
  }
  return true;
}

}  // namespace

std::string_view name_of(GgufType type) { return row_of(type).name; }

Result<GgufMetadata> GgufMetadata::parse(std::span<const std::byte> bytes,
                                         std::string_view source) {
  Reader reader(bytes, source);
  GgufMetadata metadata;
  metadata.source_ = source;
  std::uint64_t count = 0;
  if (!read_counts(reader, metadata.tensor_count_, count)) return reader.error();
  for (std::uint64_t index = 0; index < count; ++index) {
    reader.set_place(fmt::format("key-value {} of {}", index + 1, count));
    GgufEntry entry;
    if (!reader.text(entry.key, GgufLimits::key_bytes)) return reader.error();
    reader.set_place(fmt::format("key {}", quote(entry.key)));
    if (!reader.type(entry.type) || !reader.value(entry.type, entry.value)) return reader.error();
    metadata.entries_.push_back(std::move(entry));
  }
  metadata.bytes_ = reader.at();
  std::vector<std::string_view> keys;
  keys.reserve(metadata.entries_.size());
  for (const GgufEntry& entry : metadata.entries_) keys.push_back(entry.key);
  std::ranges::sort(keys);
  if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end()) {
    return Error{ErrorKind::file,
                 fmt::format("{}: key {} stands twice; accepted: once", source, quote(*twice))};
  }
  return metadata;
}

const GgufEntry* GgufMetadata::find(std::string_view key) const {
  const auto entry = std::ranges::find(entries_, key, &GgufEntry::key);
  return entry == entries_.end() ? nullptr : &*entry;
}

Error GgufMetadata::wrong_type(const GgufEntry& entry, std::string_view accepted) const {
  return Error{ErrorKind::file, fmt::format("{}: key {} has type {}; accepted: {}", source_,
                                            quote(entry.key), name_of(entry.type), accepted)};
}

Result<std::optional<std::string_view>> GgufMetadata::text(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::optional<std::string_view>();
  const auto* value = std::get_if<std::string_view>(&entry->value);
  if (value == nullptr) return wrong_type(*entry, "string");
  return std::optional(*value);
}

Result<std::optional<bool>> GgufMetadata::boolean(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::optional<bool>();
  const auto* value = std::get_if<bool>(&entry->value);
  if (value == nullptr) return wrong_type(*entry, "bool");
  return std::optional(*value);
}

Result<std::optional<std::int64_t>> GgufMetadata::whole(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::optional<std::int64_t>();
  if (const auto* value = std::get_if<std::int64_t>(&entry->value)) return std::optional(*value);
  const auto* value = std::get_if<std::uint64_t>(&entry->value);
  if (value == nullptr || *value > std::numeric_limits<std::int64_t>::max()) {
    return wrong_type(*entry, "a whole number of at most 2^63 - 1");
  }
  return std::optional(static_cast<std::int64_t>(*value));
}

Result<std::optional<float>> GgufMetadata::number(std::string_view key) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return std::optional<float>();
  const auto* value = std::get_if<double>(&entry->value);
  if (value == nullptr || entry->type != GgufType::float32) return wrong_type(*entry, "float32");
  return std::optional(static_cast<float>(*value));
}

Result<const GgufArray*> GgufMetadata::array(std::string_view key, GgufType item) const {
  const GgufEntry* entry = find(key);
  if (entry == nullptr) return nullptr;
  const auto* value = std::get_if<GgufArray>(&entry->value);
  if (value == nullptr) return wrong_type(*entry, fmt::format("array of {}", name_of(item)));
  if (value->item != item) {
    return Error{ErrorKind::file,
                 fmt::format("{}: key {} is an array of {}; accepted: of {}", source_, quote(key),
                             name_of(value->item), name_of(item))};
  }
  return value;
}

}  // namespace kvsim
