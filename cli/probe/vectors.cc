// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/probe/vectors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "cli/build_info.h"
#include "cli/kernels/own_kernels.h"
#include "model/dtype.h"
#include "model/safetensors_writer.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

/// The element type that files have for a format of a unit; the scale without a sign is stored in
/// the type with one.
const DtypeInfo& stored_type(const Format& format) {
  const Format stored = format == ue4m3 ? softfloat::e4m3 : format;
  const auto found = std::ranges::find(dtypes(), stored, &DtypeInfo::format);
  return found == dtypes().end() ? dtype_info(Dtype::f32) : *found;
}

/// Codes one after the other, the first in the lowest bits.
std::vector<std::byte> packed(std::span<const Bits> codes, int width) {
  const auto bits = static_cast<std::size_t>(width);
  std::vector<std::byte> bytes((codes.size() * bits + 7) / 8);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (std::size_t bit = 0; bit < bits; ++bit) {
      if ((codes[i] >> bit & 1) == 0) continue;
      const std::size_t at = i * bits + bit;
      bytes[at / 8] |= static_cast<std::byte>(1U << (at % 8));
    }
  }
  return bytes;
}

/// Tensors with the bytes that they point to.
class TensorList {
 public:
  void add(std::string name, const Format& format, std::vector<std::int64_t> shape,
           std::span<const Bits> codes) {
    const DtypeInfo& type = stored_type(format);
    bytes_.push_back(std::make_unique<std::vector<std::byte>>(packed(codes, type.bits)));
    tensors_.push_back({std::move(name), type.dtype, std::move(shape), *bytes_.back()});
  }
  [[nodiscard]] std::span<const Tensor> tensors() const { return tensors_; }

 private:
  std::vector<std::unique_ptr<std::vector<std::byte>>> bytes_;
  std::vector<Tensor> tensors_;
};

using RowCodes = std::vector<Bits> gpu::ProbeRow::*;

std::vector<Bits> joined(const std::vector<gpu::ProbeRow>& rows, RowCodes codes) {
  std::vector<Bits> all;
  for (const gpu::ProbeRow& row : rows) {
    all.insert(all.end(), (row.*codes).begin(), (row.*codes).end());
  }
  return all;
}

Result<bool> write(const std::string& path, const TensorList& list,
                   const std::vector<MetadataEntry>& metadata) {
  const auto written = write_safetensors(path, list.tensors(), metadata);
  if (!written) return written.error();
  return true;
}

}  // namespace

std::vector<MetadataEntry> provenance(std::string_view device,
                                      const gpu::Fingerprint& fingerprint) {
  std::vector<MetadataEntry> entries{{"written_by", "kvsim probe"},
                                     {"kvsim", std::string(build_info::version())},
                                     {"probed", std::string(device)}};
  if (fingerprint.entries.empty()) return entries;
  entries.push_back({"commit", std::string(build_info::commit())});
  entries.push_back({"date", today()});
  for (const auto& [name, text] : fingerprint.entries) entries.push_back({name, text});
  return entries;
}

Result<bool> write_vectors(const std::string& path, const MatrixUnit& row,
                           const gpu::UnitProbe& probe, std::vector<MetadataEntry> metadata) {
  const auto count = static_cast<std::int64_t>(probe.rows.size());
  const std::int64_t k = row.fan_in * row.blocks;
  TensorList list;
  list.add("a", row.operand, {count, k}, joined(probe.rows, &gpu::ProbeRow::a));
  list.add("b", row.operand, {count, k}, joined(probe.rows, &gpu::ProbeRow::b));
  std::vector<Bits> addends;
  addends.reserve(probe.rows.size());
  for (const gpu::ProbeRow& one : probe.rows) addends.push_back(one.c);
  list.add("c", row.output, {count}, addends);
  list.add("d", row.output, {count}, probe.results);
  if (row.scale_block != 0) {
    const std::int64_t scales = (k + row.scale_block - 1) / row.scale_block;
    list.add("a_scales", row.scale, {count, scales}, joined(probe.rows, &gpu::ProbeRow::a_scales));
    list.add("b_scales", row.scale, {count, scales}, joined(probe.rows, &gpu::ProbeRow::b_scales));
  }
  metadata.push_back({"unit", to_string(row)});
  metadata.push_back({"instruction", std::string(row.instruction)});
  return write(path, list, metadata);
}

Result<bool> write_table(const std::string& path, const gpu::ElementaryRow& row,
                         const gpu::ElementaryTable& table, std::vector<MetadataEntry> metadata) {
  std::vector<Bits> codes;
  codes.reserve(table.values.size());
  for (const float value : table.values) codes.push_back(softfloat::from_float(value));
  const auto size = static_cast<std::int64_t>(table.values.size());
  TensorList list;
  list.add(std::string(row.name), softfloat::binary32,
           row.halves == 1 ? std::vector<std::int64_t>{size}
                           : std::vector<std::int64_t>{row.halves, size / row.halves},
           codes);
  metadata.push_back({"instruction", std::string(row.instruction)});
  metadata.push_back({"inputs", std::string(row.inputs)});
  return write(path, list, metadata);
}

}  // namespace kvsim
