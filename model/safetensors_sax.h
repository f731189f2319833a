// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/safetensors_header.h"

namespace kvsim {

/// The begin and end of a tensor's data, counted from the end of the header.
using DataOffsets = std::array<std::uint64_t, 2>;

/// Takes the events of the JSON parser and keeps what a safetensors header may hold. No tree of
/// JSON values is built, and nesting deeper than the format's is refused at its first bracket, so
/// that neither memory nor stack depends on how hostile the text is. The methods that the parser
/// calls return false to stop it; problem() then says why.
class SafetensorsSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t size) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t size) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& failure) override;

  /// What was wrong, without the file's name; empty if nothing was.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// The tensors in the order of the header; their bytes are not set yet.
  [[nodiscard]] std::vector<Tensor>& tensors() { return tensors_; }
  /// The offsets of each of tensors().
  [[nodiscard]] const std::vector<DataOffsets>& offsets() const { return offsets_; }
  [[nodiscard]] std::vector<MetadataEntry>& metadata() { return metadata_; }

 private:
  enum class Place { before, file, metadata, tensor, shape, offsets, after };
  enum class Field { none, dtype, shape, offsets };

  bool refuse(std::string problem);
  bool unexpected(std::string_view what);
  bool tensor_key(std::string_view name);
  bool size_or_offset(std::uint64_t value);
  bool end_tensor();
  [[nodiscard]] std::string where() const;
  [[nodiscard]] std::string_view expected() const;

  Place place_ = Place::before;
  Field field_ = Field::none;
  bool has_metadata_ = false;
  bool next_is_metadata_ = false;
  std::array<bool, 4> seen_{};  ///< by Field, of the current tensor
  std::size_t offsets_seen_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<DataOffsets> offsets_;
  std::vector<MetadataEntry> metadata_;
  std::string problem_;
};

}  // namespace kvsim
