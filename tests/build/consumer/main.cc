// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <cstdio>

#include "model/safetensors.h"
#include "sim/order.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"

int main() {
  namespace softfloat = kvsim::softfloat;
  // 1 + 2^-11 is a tie in binary16 and goes to even, which is 1.
  const softfloat::Rounded sum = softfloat::add(softfloat::binary16, 0x3c00, 0x1000);
  const kvsim::Result<kvsim::Order> order = kvsim::parse_order("split(4)/lanes(16,2)");
  const auto file = kvsim::SafetensorsFile::open("no such file");
  const bool good = sum.bits == 0x3c00 && order.has_value() && !file.has_value();
  std::puts(good ? "kvsim works here" : "kvsim gives other results here");
  return good ? 0 : 1;
}
