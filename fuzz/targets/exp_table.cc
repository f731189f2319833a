// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Tables of ex2 from any bytes, read as binary32: one line of error, or a function that gives the
// table's values at its own arguments, scaled by powers of two, and powers of two at integers.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/targets/input.h"
#include "sim/compare.h"
#include "sim/exp_models.h"
#include "softfloat/formats.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 2000);
  for (const char character : error.message) require(character != '\n' && character != '\0');
}

void check_table(const kvsim::ExpTable& table) {
  require(std::size_t{1} << table.fraction_bits == table.values.size());
  const kvsim::ExpFunction function(kvsim::ExpModel::ex2_approx, {&table, 0, 0});
  require(!function.bounded());
  for (int exponent = -126; exponent <= 127; ++exponent) {
    require(function.exp2(static_cast<float>(exponent)) == std::ldexp(1.0F, exponent));
  }
  require(std::isnan(function.exp2(std::nanf(""))));
  require(function.exp2(-INFINITY) == 0 && function.exp2(INFINITY) == INFINITY);
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const float fraction = std::ldexp(static_cast<float>(i), -table.fraction_bits);
    require(function.exp2(fraction) == table.values[i]);
    if (table.fraction_bits > 20) continue;  // 7 + fraction would be rounded
    require(function.exp2(7 + fraction) == std::ldexp(table.values[i], 7));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size - size % 4));
  const std::vector<float> values = kvsim::decode_values(kvsim::softfloat::binary32, bytes);
  const auto table = kvsim::make_exp_table(values);
  if (table) {
    check_table(*table);
  } else {
    check_error(table.error());
  }
  return 0;
}
