// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/format_option.h"
#include "cli/printable.h"
#include "model/safetensors_writer.h"
#include "sim/compare.h"
#include "sim/engine/columns.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Format;

const DtypeInfo* dtype_of(const Format& format) {
  for (const DtypeInfo& row : dtypes()) {
    if (row.format == format) return &row;
  }
  return nullptr;
}

bool is_readable(const DtypeInfo& type) {
  return type.format && type.bits % 8 == 0 && type.format != softfloat::e8m0;
}

bool is_float(const Format& format) {
  return format != softfloat::binary64 && format != softfloat::e8m0;
}

std::string names_held(const SafetensorsFile& file) {
  constexpr std::size_t most = 8;
  std::string names;
  const std::size_t count = file.tensors().size();
  for (const Tensor& tensor : file.tensors().first(std::min(most, count))) {
    if (!names.empty()) names += ", ";
    names += in_quotes(tensor.name);
  }
  if (count > most) names += fmt::format(" and {} more", count - most);
  return names.empty() ? "no tensors" : names;
}

/// Codes as floats, each rounded to `to`.
std::vector<float> rounded_values(const Format& from, const Format& to,
                                  std::span<const std::byte> bytes, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const softfloat::Bits code = softfloat::convert(to, from, code_at(from, bytes, i)).bits;
    values[static_cast<std::size_t>(i)] = softfloat::to_float(to, code);
  }
  return values;
}

}  // namespace

Error ReplayFile::fail(const std::string& what) const {
  return {ErrorKind::usage, fmt::format("{}: {}", printable(file_.path()), what)};
}

Result<ReplayFile> ReplayFile::open(const ParsedOptions& options) {
  const std::optional<std::string> path = options.value("--tensors");
  if (!path) {
    return Error{ErrorKind::usage,
                 "replay has no --tensors; --tensors FILE, a safetensors file, is accepted"};
  }
  std::optional<Format> input;
  if (const auto text = options.value("--input")) {
    const Result<const softfloat::NamedFormat*> row = format_named("--input", *text);
    if (!row) return row.error();
    if (!is_float((*row)->format)) {
      return Error{ErrorKind::usage,
                   fmt::format("--input is {}; a format whose numbers are all binary32 numbers is "
                               "accepted",
                               (*row)->name)};
    }
    input = (*row)->format;
  }
  Result<SafetensorsFile> file = SafetensorsFile::open(*path);
  if (!file) return file.error();
  return ReplayFile(std::move(*file), input);
}

Result<TensorValues> ReplayFile::values(std::string_view name, std::span<std::int64_t> shape,
                                        std::string_view axes) const {
  const Tensor* tensor = file_.find(name);
  if (tensor == nullptr) {
    return fail(fmt::format("tensor {} is missing, the file holds {}; {} {} is accepted", name,
                            names_held(file_), name, axes));
  }
  const DtypeInfo& type = dtype_info(tensor->dtype);
  if (!is_readable(type)) {
    return fail(
        fmt::format("{} is {}; F64, F32, F16, BF16 and F8 types are accepted", name, type.name));
  }
  bool fits = tensor->shape.size() == shape.size();
  std::int64_t count = 1;
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = tensor->shape[i] > 0 && (shape[i] == -1 || shape[i] == tensor->shape[i]);
    if (!fits) break;
    shape[i] = tensor->shape[i];
    if (count > max_tensor_elements / shape[i]) {
      return fail(fmt::format("{} has the shape {}; at most {} elements are accepted", name,
                              shape_text(tensor->shape), max_tensor_elements));
    }
    count *= shape[i];
  }
  if (!fits) {
    return fail(fmt::format("{} has the shape {}; {} with every size at least 1 is accepted", name,
                            shape_text(tensor->shape), axes));
  }
  const Format from = type.format.value_or(softfloat::binary32);  // is_readable() said it is there
  if (!input_ && !is_float(from)) {
    return fail(fmt::format("{} is F64; --input FORMAT to round it to is accepted", name));
  }
  const Format to = input_.value_or(from);
  return TensorValues{to, tensor->shape,
                      from == to ? decode_values(from, tensor->bytes)
                                 : rounded_values(from, to, tensor->bytes, count)};
}

std::optional<Error> ReplayFile::check_expected(const ParsedOptions& options) const {
  const std::optional<std::string> name = options.value("--expect");
  if (!name || has(*name)) return std::nullopt;
  return fail(fmt::format("tensor {} is missing, the file holds {}; --expect accepts one of them",
                          in_quotes(*name), names_held(file_)));
}

Result<std::optional<Expected>> ReplayFile::expected(const ParsedOptions& options,
                                                     const Replay& replay) const {
  const std::optional<std::string> name = options.value("--expect");
  if (!name) return std::optional<Expected>();
  if (auto error = check_expected(options)) return std::move(*error);
  const Tensor* tensor = file_.find(*name);
  for (const ReplayOutput& output : replay.outputs) {
    if (dtype_info(tensor->dtype).format != output.format) {
      return fail(
          fmt::format("{} is {} and the results of {} are {}; a tensor of that format is "
                      "accepted",
                      printable(*name), dtype_info(tensor->dtype).name, printable(output.name),
                      softfloat::format_name(output.format)));
    }
  }
  if (tensor->shape != replay.shape) {
    return fail(fmt::format("{} has the shape {}; {}, that of the results, is accepted",
                            printable(*name), shape_text(tensor->shape), shape_text(replay.shape)));
  }
  return std::optional(
      Expected{*name, replay.outputs.front().format, tensor->shape, tensor->bytes});
}

std::optional<Error> write_outputs(const ParsedOptions& options, const Replay& replay) {
  const std::optional<std::string> path = options.value("--out");
  if (!path) return std::nullopt;
  std::vector<Tensor> tensors;
  std::vector<MetadataEntry> metadata{{"operator", replay.operator_name}};
  std::vector<std::vector<std::byte>> log_sums;  // what the tensors point at
  tensors.reserve(2 * replay.outputs.size());
  metadata.reserve(replay.outputs.size() + 1);
  log_sums.reserve(replay.outputs.size());
  for (const ReplayOutput& output : replay.outputs) {
    const DtypeInfo* type = dtype_of(output.format);
    if (type == nullptr) {
      return Error{ErrorKind::usage,
                   fmt::format("--out is given and the results of {} are {}, for which safetensors "
                               "has no type; --out is accepted for other formats",
                               printable(output.name), softfloat::format_name(output.format))};
    }
    const auto name_of = [&](std::string_view tensor) {
      return replay.outputs.size() == 1 ? std::string(tensor)
                                        : fmt::format("{}.{}", tensor, output.name);
    };
    Tensor tensor;
    tensor.name = name_of(replay.tensor);
    tensor.dtype = type->dtype;
    tensor.shape = replay.shape;
    tensor.bytes = output.bytes;
    metadata.push_back({tensor.name, output.name});
    tensors.push_back(std::move(tensor));
    if (output.log_sums.empty()) continue;
    log_sums.push_back(encode_values(softfloat::binary32, output.log_sums));
    Tensor lse;
    lse.name = name_of("lse");
    lse.dtype = Dtype::f32;
    lse.shape = {replay.heads, replay.positions};
    lse.bytes = log_sums.back();
    tensors.push_back(std::move(lse));
  }
  const Result<std::uint64_t> written = write_safetensors(*path, tensors, metadata);
  if (!written) return written.error();
  return std::nullopt;
}

std::string_view dtype_name_of(const Format& format) {
  const DtypeInfo* type = dtype_of(format);
  return type == nullptr ? std::string_view() : type->name;
}

}  // namespace kvsim
