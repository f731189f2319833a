// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/elementary_wide.h"

#include <boost/math/constants/constants.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstdint>

#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/round.h"
#include "softfloat/wide.h"

namespace kvsim::elementary {
namespace {

namespace mp = boost::multiprecision;
using Wide = mp::number<mp::cpp_bin_float<500, mp::digit_base_2, void, std::int32_t>, mp::et_off>;

/// 2/√π e^(−x²) Σ 2^n x^(2n+1) / (1·3·5 … (2n + 1)): every term has the sign of x.
Wide erf_wide(const Wide& x) {
  const Wide twice_square = 2 * x * x;
  Wide term = x;
  Wide sum = x;
  for (int n = 1; mp::fabs(term) > mp::ldexp(mp::fabs(sum), -400); ++n) {
    term *= twice_square / (2 * n + 1);
    sum += term;
  }
  return sum * exp(-x * x) * boost::math::constants::two_div_root_pi<Wide>();
}

Wide evaluate(Function function, const Wide& x, const Wide& y) {
  switch (function) {
    case Function::exp:
      return exp(x);
    case Function::exp2:
      return exp(x * boost::math::constants::ln_two<Wide>());
    case Function::log:
      return log(x);
    case Function::log2:
      return log(x) / boost::math::constants::ln_two<Wide>();
    case Function::tanh: {
      const Wide square = exp(2 * x);
      return (square - 1) / (square + 1);
    }
    case Function::erf:
      return erf_wide(x);
    case Function::sin:
      return sin(x);
    case Function::cos:
      return cos(x);
    case Function::reciprocal_square_root:
      return 1 / sqrt(x);
    case Function::pow:
      break;
  }
  return exp(y * log(x));
}

}  // namespace

float round_wide(Function function, float x, float y) {
  const Wide value = evaluate(function, Wide(x), Wide(y));
  if (value == 0) return 0;
  int exponent = 0;
  const Wide scaled = mp::ldexp(mp::frexp(Wide(mp::fabs(value)), &exponent), 126);
  const Wide integer = mp::round(scaled);
  const bool exact = mp::fabs(Wide(scaled - integer)) < mp::ldexp(Wide(1), -74);
  // Cut below where the value lies between two integers: the sticky bit stands for the rest.
  const auto significand =
      static_cast<softfloat::uint128>(mp::cpp_int(exact ? integer : mp::floor(scaled)));
  const softfloat::Exact result =
      softfloat::make_exact<softfloat::uint128>(value < 0, significand, exponent - 126, !exact);
  return softfloat::to_float(softfloat::binary32,
                             softfloat::round_pack(softfloat::binary32, result, {}).bits);
}

}  // namespace kvsim::elementary
