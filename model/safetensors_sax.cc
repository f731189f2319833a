// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/safetensors_sax.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

constexpr std::string_view metadata_key = "__metadata__";
constexpr std::array<std::string_view, 4> field_names{"", "dtype", "shape", "data_offsets"};

}  // namespace

bool SafetensorsSax::refuse(std::string problem) {
  problem_ = std::move(problem);
  return false;
}

std::string SafetensorsSax::where() const {
  switch (place_) {
    case Place::before:
    case Place::after:
      return "the header";
    case Place::file:
      return next_is_metadata_ ? std::string(metadata_key)
                               : fmt::format("tensor {}", quote(tensors_.back().name));
    case Place::metadata:
      return fmt::format("{} {}", metadata_key, quote(metadata_.back().key));
    case Place::tensor:
    case Place::shape:
    case Place::offsets:
      break;
  }
  return fmt::format("tensor {}: {}", quote(tensors_.back().name),
                     field_names[static_cast<std::size_t>(field_)]);
}

std::string_view SafetensorsSax::expected() const {
  switch (place_) {
    case Place::before:
    case Place::after:
      return "one JSON object";
    case Place::file:
      return next_is_metadata_ ? "an object of texts"
                               : "an object with dtype, shape and data_offsets";
    case Place::metadata:
      return "a text";
    case Place::tensor:
      if (field_ == Field::dtype) return "a text";
      return field_ == Field::shape ? "an array of sizes" : "an array of two offsets";
    case Place::shape:
    case Place::offsets:
      break;
  }
  return "whole numbers from 0 to 9223372036854775807";
}

bool SafetensorsSax::unexpected(std::string_view what) {
  const bool inside = place_ == Place::shape || place_ == Place::offsets;
  return refuse(
      fmt::format("{} {} {}; accepted: {}", where(), inside ? "holds" : "is", what, expected()));
}

bool SafetensorsSax::null() { return unexpected("null"); }

bool SafetensorsSax::boolean(bool value) { return unexpected(value ? "true" : "false"); }

bool SafetensorsSax::number_integer(number_integer_t value) {
  return unexpected(fmt::format("the number {}", value));
}

bool SafetensorsSax::number_unsigned(number_unsigned_t value) {
  if (place_ == Place::shape || place_ == Place::offsets) return size_or_offset(value);
  return unexpected(fmt::format("the number {}", value));
}

bool SafetensorsSax::number_float(number_float_t /*value*/, const string_t& text) {
  return unexpected(fmt::format("the number {}", quote(text)));
}

bool SafetensorsSax::string(string_t& value) {
  if (place_ == Place::metadata) {
    metadata_.back().text.assign(value);  // a copy, as the parser's buffer is larger than its text
    return true;
  }
  if (place_ != Place::tensor || field_ != Field::dtype) {
    return unexpected(fmt::format("the text {}", quote(value)));
  }
  const DtypeInfo* row = find_dtype(value);
  if (row == nullptr) {
    return refuse(
        fmt::format("{} {} is not known; accepted: {}", where(), quote(value), dtype_names()));
  }
  tensors_.back().dtype = row->dtype;
  return true;
}

bool SafetensorsSax::binary(binary_t& /*value*/) { return unexpected("binary data"); }

bool SafetensorsSax::start_object(std::size_t /*size*/) {
  switch (place_) {
    case Place::before:
      place_ = Place::file;
      return true;
    case Place::file:
      place_ = next_is_metadata_ ? Place::metadata : Place::tensor;
      field_ = Field::none;
      seen_ = {};
      return true;
    default:
      return unexpected("an object");
  }
}

bool SafetensorsSax::key(string_t& name) {
  if (place_ == Place::tensor) return tensor_key(name);
  if (place_ == Place::metadata) {
    if (metadata_.size() >= SafetensorsLimits::metadata_entries) {
      return refuse(fmt::format("{} has more than {} entries; accepted: at most {}", metadata_key,
                                metadata_.size(), SafetensorsLimits::metadata_entries));
    }
    metadata_.emplace_back().key.assign(name);
    return true;
  }
  next_is_metadata_ = name == metadata_key;
  if (next_is_metadata_) {
    if (has_metadata_) {
      return refuse(fmt::format("{} stands twice in the header; accepted: once", metadata_key));
    }
    has_metadata_ = true;
    return true;
  }
  if (tensors_.size() >= SafetensorsLimits::tensors) {
    return refuse(fmt::format("the header has more than {} tensors; accepted: at most {}",
                              tensors_.size(), SafetensorsLimits::tensors));
  }
  tensors_.emplace_back().name.assign(name);
  offsets_.emplace_back();
  return true;
}

bool SafetensorsSax::tensor_key(std::string_view name) {
  for (std::size_t index = 1; index < field_names.size(); ++index) {
    if (name != field_names[index]) continue;
    if (seen_[index]) {
      return refuse(fmt::format("tensor {}: {} stands twice; accepted: once",
                                quote(tensors_.back().name), name));
    }
    seen_[index] = true;
    field_ = static_cast<Field>(index);
    return true;
  }
  return refuse(fmt::format("tensor {}: key {} is not known; accepted: dtype, shape, data_offsets",
                            quote(tensors_.back().name), quote(name)));
}

bool SafetensorsSax::end_object() {
  if (place_ == Place::tensor) return end_tensor();
  place_ = place_ == Place::metadata ? Place::file : Place::after;
  return true;
}

bool SafetensorsSax::end_tensor() {
  for (std::size_t index = 1; index < field_names.size(); ++index) {
    if (seen_[index]) continue;
    return refuse(fmt::format("tensor {}: {} is missing; accepted: dtype, shape and data_offsets",
                              quote(tensors_.back().name), field_names[index]));
  }
  place_ = Place::file;
  return true;
}

bool SafetensorsSax::start_array(std::size_t /*size*/) {
  if (place_ != Place::tensor || field_ == Field::dtype) return unexpected("an array");
  place_ = field_ == Field::shape ? Place::shape : Place::offsets;
  offsets_seen_ = 0;
  return true;
}

bool SafetensorsSax::size_or_offset(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return unexpected(fmt::format("the number {}", value));
  }
  if (place_ == Place::offsets) {
    if (offsets_seen_ == 2) return refuse(where() + " has more than 2 numbers; accepted: 2");
    offsets_.back()[offsets_seen_++] = value;
    return true;
  }
  std::vector<std::int64_t>& shape = tensors_.back().shape;
  if (shape.size() >= SafetensorsLimits::dimensions) {
    return refuse(fmt::format("{} has more than {} sizes; accepted: at most {}", where(),
                              shape.size(), SafetensorsLimits::dimensions));
  }
  shape.push_back(static_cast<std::int64_t>(value));
  return true;
}

bool SafetensorsSax::end_array() {
  if (place_ == Place::offsets && offsets_seen_ != 2) {
    return refuse(
        fmt::format("{} has {} of 2 numbers; accepted: begin and end", where(), offsets_seen_));
  }
  place_ = Place::tensor;
  return true;
}

bool SafetensorsSax::parse_error(std::size_t position, const std::string& token,
                                 const nlohmann::json::exception& /*failure*/) {
  return refuse(
      fmt::format("the header is no JSON at its byte {}, near {}; accepted: one JSON "
                  "object in UTF-8",
                  position, quote(token)));
}

}  // namespace kvsim
