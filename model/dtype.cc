// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/dtype.h"

#include <array>

#include "softfloat/formats.h"

namespace kvsim {
namespace {

using std::nullopt;

constexpr std::array<DtypeInfo, 22> table{{
    {Dtype::boolean, "BOOL", 8, nullopt},
    {Dtype::f4, "F4", 4, softfloat::e2m1},
    {Dtype::f6_e2m3, "F6_E2M3", 6, softfloat::e2m3},
    {Dtype::f6_e3m2, "F6_E3M2", 6, softfloat::e3m2},
    {Dtype::u8, "U8", 8, nullopt},
    {Dtype::i8, "I8", 8, nullopt},
    {Dtype::f8_e5m2, "F8_E5M2", 8, softfloat::e5m2},
    {Dtype::f8_e4m3, "F8_E4M3", 8, softfloat::e4m3},
    {Dtype::f8_e8m0, "F8_E8M0", 8, softfloat::e8m0},
    {Dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, softfloat::e4m3fnuz},
    {Dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, softfloat::e5m2fnuz},
    {Dtype::i16, "I16", 16, nullopt},
    {Dtype::u16, "U16", 16, nullopt},
    {Dtype::f16, "F16", 16, softfloat::binary16},
    {Dtype::bf16, "BF16", 16, softfloat::bfloat16},
    {Dtype::i32, "I32", 32, nullopt},
    {Dtype::u32, "U32", 32, nullopt},
    {Dtype::f32, "F32", 32, softfloat::binary32},
    {Dtype::c64, "C64", 64, nullopt},
    {Dtype::f64, "F64", 64, softfloat::binary64},
    {Dtype::i64, "I64", 64, nullopt},
    {Dtype::u64, "U64", 64, nullopt},
}};

constexpr bool rows_stand_in_enum_order() {
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (static_cast<std::size_t>(table[row].dtype) != row) return false;
  }
  return true;
}
static_assert(rows_stand_in_enum_order());

}  // namespace

std::span<const DtypeInfo> dtypes() { return table; }

const DtypeInfo& dtype_info(Dtype dtype) { return table[static_cast<std::size_t>(dtype)]; }

const DtypeInfo* find_dtype(std::string_view name) {
  for (const DtypeInfo& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string dtype_names() {
  std::string names;
  for (const DtypeInfo& row : table) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace kvsim
