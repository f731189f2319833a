// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// What a matrix unit computes, once more: from the definitions of its operation, on GMP integers
/// that count 2^-2400, with the decoder and the rounding of tests/softfloat. It shares the rows'
/// parameters with sim/units, and no code.

#include <gmp.h>

#include <cstddef>
#include <span>
#include <vector>

#include "sim/units/matrix_unit.h"
#include "tests/softfloat/oracle.h"

namespace kvsim::oracle {

/// An integer of any size.
class Integer {
 public:
  Integer() { mpz_init(z_); }
  explicit Integer(std::uint64_t x) { mpz_init_set_ui(z_, x); }
  Integer(const Integer& other) { mpz_init_set(z_, other.z_); }
  Integer& operator=(const Integer& other) {
    mpz_set(z_, other.z_);
    return *this;
  }
  ~Integer() { mpz_clear(z_); }

  Integer& operator+=(const Integer& other) {
    mpz_add(z_, z_, other.z_);
    return *this;
  }
  [[nodiscard]] Integer operator*(const Integer& other) const {
    Integer out;
    mpz_mul(out.z_, z_, other.z_);
    return out;
  }
  [[nodiscard]] Integer negated() const {
    Integer out;
    mpz_neg(out.z_, z_);
    return out;
  }
  [[nodiscard]] Integer shifted(long left) const {
    Integer out;
    if (left >= 0) {
      mpz_mul_2exp(out.z_, z_, static_cast<mp_bitcnt_t>(left));
    } else {
      mpz_tdiv_q_2exp(out.z_, z_, static_cast<mp_bitcnt_t>(-left));
    }
    return out;
  }
  /// A multiple of 2^bits: toward zero, or toward −∞.
  [[nodiscard]] Integer truncated(long bits) const { return cut(bits, mpz_tdiv_q_2exp); }
  [[nodiscard]] Integer floored(long bits) const { return cut(bits, mpz_fdiv_q_2exp); }
  [[nodiscard]] int sign() const { return mpz_sgn(z_); }
  /// ⌊log2 |x|⌋ of a number that is not zero.
  [[nodiscard]] long log2() const { return static_cast<long>(mpz_sizeinbase(z_, 2)) - 1; }
  [[nodiscard]] mpz_srcptr get() const { return z_; }

 private:
  [[nodiscard]] Integer cut(long bits, void (*divide)(mpz_ptr, mpz_srcptr, mp_bitcnt_t)) const {
    if (bits <= 0) return *this;
    Integer out;
    divide(out.z_, z_, static_cast<mp_bitcnt_t>(bits));
    return out.shifted(bits);
  }

  mpz_t z_;
};

/// d = c + Σ a[k]·b[k] by the unit's definition; the operands as in sim/units/dot.h.
Bits expected_dot(const MatrixUnit& unit, std::span<const Bits> a, std::span<const Bits> b, Bits c,
                  std::span<const Bits> a_scales = {}, std::span<const Bits> b_scales = {});

/// The exact Σ and c, rounded once to the unit's output by its conversion; finite operands.
Bits exact_dot_rounded(const MatrixUnit& unit, std::span<const Bits> a, std::span<const Bits> b,
                       Bits c);

}  // namespace kvsim::oracle
