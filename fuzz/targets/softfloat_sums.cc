// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// Sums that are rounded once against their definitions in GMP's integers: the sum inside a matrix
// unit, and exact sums and dot products, in every format and rounding.
//
// An input is a head of 14 bytes (which sum, two formats, mode, bits that a unit keeps, exponent of
// its zeros), and then pairs of factors of 8 bytes each.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/targets/input.h"
#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"
#include "softfloat/fused_sum.h"
#include "tests/softfloat/oracle_round.h"
#include "tests/softfloat/sum_oracle.h"

namespace {

using kvsim::softfloat::Bits;
using kvsim::softfloat::Format;
using kvsim::softfloat::Mode;
using kvsim::targets::Input;
using kvsim::targets::require;
namespace sf = kvsim::softfloat;
namespace oracle = kvsim::oracle;

constexpr std::size_t most_terms = 64;

Mode read_mode(Input& input) {
  constexpr int roundings = 7, policies = 4;
  Mode mode;
  mode.rounding = static_cast<sf::Rounding>(input.below(roundings));
  mode.overflow = static_cast<sf::Overflow>(input.below(policies));
  mode.tininess = static_cast<sf::Tininess>(input.below(2));
  mode.random = static_cast<std::uint32_t>(input.word(4));
  return mode;
}

void check_fused(const Format& factor, const Format& output, const Mode& mode, Input& input) {
  sf::FusedSum sum;
  sum.output = output;
  sum.mode = mode;
  sum.fraction_bits = static_cast<int>(input.below(61));
  const std::int64_t zero_exponent = input.below(64);
  std::vector<sf::FusedTerm> terms;
  std::vector<oracle::Term> defined;
  const auto addend = [&](Bits bits) {
    terms.push_back(sf::fused_term(output, bits & output.code_mask()));
    defined.push_back(oracle::term(output, bits & output.code_mask()));
  };
  // As in every matrix unit: where zeros have an exponent it lies below those of the addend, which
  // is there.
  if (zero_exponent != 0) {
    sum.zero_exponent = oracle::limits(output).emin - static_cast<int>(zero_exponent);
    addend(input.word(8));
  }
  while (!input.empty() && terms.size() < most_terms) {
    const Bits a = input.word(8) & factor.code_mask();
    const Bits b = input.word(8) & factor.code_mask();
    terms.push_back(sf::fused_product(factor, a, factor, b));
    defined.push_back(oracle::product(oracle::term(factor, a), oracle::term(factor, b)));
  }
  require(sf::fused_sum(terms, sum) == oracle::defined_sum(defined, sum));
}

void check_exact(const Format& factor, const Format& output, const Mode& mode, bool products,
                 Input& input) {
  std::vector<Bits> a;
  std::vector<Bits> b;
  while (!input.empty() && a.size() < most_terms) {
    a.push_back(input.word(8) & factor.code_mask());
    if (products) b.push_back(input.word(8) & factor.code_mask());
  }
  const oracle::Exact exact = oracle::defined_dot(factor, a, b);
  const sf::Rounded got =
      products ? sf::exact_dot(factor, a, b, output, mode) : sf::exact_sum(factor, a, output, mode);
  require(got == oracle::round(exact, output, mode));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::int64_t kind = input.below(3);
  const Format factor = input.one_of(sf::formats()).format;
  const Format output = input.one_of(sf::formats()).format;
  const Mode mode = read_mode(input);
  if (kind > 0) {
    check_exact(factor, output, mode, kind == 2, input);
  } else if (factor.precision <= 24 && output.has_zero() && output.precision <= 24) {
    check_fused(factor, output, mode, input);
  }
  return 0;
}
