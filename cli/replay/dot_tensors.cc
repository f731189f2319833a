// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/replay/dot_tensors.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "cli/printable.h"
#include "softfloat/text.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// The codes of a tensor whose elements are packed, the first one in the lowest bits.
std::vector<Bits> unpack_codes(std::span<const std::byte> bytes, int width, std::size_t count) {
  const auto bits = static_cast<std::size_t>(width);
  std::vector<Bits> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t bit = 0; bit < bits; ++bit) {
      const std::size_t at = i * bits + bit;
      const Bits one = std::to_integer<Bits>(bytes[at / 8]) >> (at % 8) & 1;
      codes[i] |= one << bit;
    }
  }
  return codes;
}

/// The element type that a file has for a format of a unit. The scale without a sign is stored in
/// the type with one.
Format stored_format(const Format& format) { return format == ue4m3 ? softfloat::e4m3 : format; }

std::string_view dtype_name(const Format& format) {
  for (const DtypeInfo& row : dtypes()) {
    if (row.format == stored_format(format)) return row.name;
  }
  return "none";
}

class Reader {
 public:
  Reader(const SafetensorsFile& file, const MatrixUnit& unit) : file_(file), unit_(unit) {}

  /// The codes of a tensor; `shape` is filled where a size is −1 and checked elsewhere.
  Result<std::vector<Bits>> codes(const std::string& name, const Format& format,
                                  std::span<std::int64_t> shape, std::string_view shape_names) {
    const Tensor* tensor = file_.find(name);
    if (tensor == nullptr) {
      return fail(fmt::format("has no tensor {}; {} is accepted", in_quotes(name), shape_names));
    }
    const DtypeInfo& type = dtype_info(tensor->dtype);
    if (type.format != stored_format(format)) {
      return fail(fmt::format("{} is {}; {} is accepted for {}", name, type.name,
                              dtype_name(format), to_string(unit_)));
    }
    bool fits = tensor->shape.size() == shape.size();
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      if (shape[i] == -1) shape[i] = tensor->shape[i];
      fits = tensor->shape[i] == shape[i] && shape[i] > 0;
    }
    if (!fits) {
      return fail(fmt::format("{} has the shape {}; {} is accepted", name,
                              shape_text(tensor->shape), shape_names));
    }
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    std::vector<Bits> out = unpack_codes(tensor->bytes, type.bits, count);
    if (format.has_sign) return out;
    for (const Bits code : out) {
      if ((code & ~format.code_mask()) != 0) {
        return fail(
            fmt::format("{} has the scale {}, which is negative; scales without a sign "
                        "are accepted",
                        name, softfloat::to_bits_text(stored_format(format), code)));
      }
    }
    return out;
  }

 private:
  [[nodiscard]] Error fail(const std::string& what) const {
    return {ErrorKind::usage, fmt::format("{}: {}", printable(file_.path()), what)};
  }

  const SafetensorsFile& file_;
  const MatrixUnit& unit_;
};

}  // namespace

DotOperands DotTensors::row(std::size_t i) const {
  const auto part = [&](const std::vector<Bits>& codes, std::size_t width) {
    return std::span(codes).subspan(i * width, width);
  };
  return {part(a, k), part(b, k), c[i], part(a_scales, scales), part(b_scales, scales)};
}

Result<DotTensors> read_dot_tensors(const SafetensorsFile& file, const MatrixUnit& unit) {
  Reader reader(file, unit);
  DotTensors tensors;
  std::int64_t matrix[] = {-1, -1};
  auto a = reader.codes("a", unit.operand, matrix, "a [rows, K], neither of them 0,");
  if (!a) return a.error();
  const std::string matrix_shape = fmt::format("[{}, {}], the shape of a,", matrix[0], matrix[1]);
  auto b = reader.codes("b", unit.operand, matrix, "b " + matrix_shape);
  if (!b) return b.error();
  std::int64_t vector[] = {matrix[0]};
  const std::string vector_shape = fmt::format("[{}], one for each row of a,", vector[0]);
  auto c = reader.codes("c", unit.output, vector, "c " + vector_shape);
  if (!c) return c.error();
  tensors.rows = static_cast<std::size_t>(matrix[0]);
  tensors.k = static_cast<std::size_t>(matrix[1]);
  tensors.a = std::move(*a);
  tensors.b = std::move(*b);
  tensors.c = std::move(*c);
  if (unit.scale_block != 0) {
    std::int64_t scales[] = {matrix[0], (matrix[1] + unit.scale_block - 1) / unit.scale_block};
    tensors.scales = static_cast<std::size_t>(scales[1]);
    const std::string scale_shape =
        fmt::format("[{}, {}], one for {} elements,", scales[0], scales[1], unit.scale_block);
    auto a_scales = reader.codes("a_scales", unit.scale, scales, "a_scales " + scale_shape);
    if (!a_scales) return a_scales.error();
    auto b_scales = reader.codes("b_scales", unit.scale, scales, "b_scales " + scale_shape);
    if (!b_scales) return b_scales.error();
    tensors.a_scales = std::move(*a_scales);
    tensors.b_scales = std::move(*b_scales);
  }
  return tensors;
}

}  // namespace kvsim
