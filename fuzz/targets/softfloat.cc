// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Each operation of softfloat against MPFR: bits and flags, in every format, rounding, overflow
// policy, tininess and treatment of subnormals. The oracle is that of the tests of arithmetic.
//
// An input is a list of cases of 34 bytes: operation, format of the result, format that a
// conversion starts from, rounding, overflow, subnormals and tininess, 4 bytes for stochastic
// rounding, three operands of 8 bytes each.
#include <array>
#include <cstddef>
#include <cstdint>

#include "fuzz/targets/input.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "tests/softfloat/oracle.h"

namespace {

using kvsim::oracle::Op;
using kvsim::softfloat::Bits;
using kvsim::softfloat::Format;
using kvsim::softfloat::Mode;
using kvsim::softfloat::Rounded;

struct Case {
  Op op;
  Format to;
  Format from;
  Mode mode;
  std::array<Bits, 3> operands;
};

Rounded computed(const Case& c) {
  namespace sf = kvsim::softfloat;
  const auto& [x, y, z] = c.operands;
  switch (c.op) {
    case Op::add:
      return sf::add(c.to, x, y, c.mode);
    case Op::sub:
      return sf::sub(c.to, x, y, c.mode);
    case Op::mul:
      return sf::mul(c.to, x, y, c.mode);
    case Op::div:
      return sf::div(c.to, x, y, c.mode);
    case Op::fma:
      return sf::fma(c.to, x, y, z, c.mode);
    case Op::sqrt:
      return sf::sqrt(c.to, x, c.mode);
    case Op::convert:
      return sf::convert(c.to, c.from, x, c.mode);
    case Op::round_to_integral:
      break;
  }
  return sf::round_to_integral(c.to, x, c.mode);
}

/// e8m0 is a scale, which is multiplied, divided and converted, but never added (docs/numerics.md).
bool is_offered(Op op, const Format& format) {
  return format.has_zero() || op == Op::mul || op == Op::div || op == Op::convert;
}

Case read_case(kvsim::targets::Input& input) {
  constexpr int operations = 8, roundings = 7, policies = 4;
  namespace sf = kvsim::softfloat;
  Case c{};
  c.op = static_cast<Op>(input.below(operations));
  c.to = input.one_of(sf::formats()).format;
  const Format other = input.one_of(sf::formats()).format;
  c.from = c.op == Op::convert ? other : c.to;
  c.mode.rounding = static_cast<sf::Rounding>(input.below(roundings));
  c.mode.overflow = static_cast<sf::Overflow>(input.below(policies));
  const std::int64_t small = input.below(2 * policies);
  c.mode.subnormals = static_cast<sf::Subnormals>(small / 2);
  c.mode.tininess = static_cast<sf::Tininess>(small % 2);
  c.mode.random = static_cast<std::uint32_t>(input.word(4));
  for (Bits& operand : c.operands) operand = input.word(8) & c.from.code_mask();
  return c;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static kvsim::oracle::Oracle oracle;
  kvsim::targets::Input input(data, size);
  while (!input.empty()) {
    const Case c = read_case(input);
    if (!is_offered(c.op, c.to)) continue;
    const auto& [x, y, z] = c.operands;
    const Rounded want = kvsim::oracle::expected(oracle, c.op, c.to, c.from, x, y, z, c.mode);
    kvsim::targets::require(computed(c) == want);
  }
  return 0;
}
