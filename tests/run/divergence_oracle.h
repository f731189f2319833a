// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// Softmax, KL and JS by their definitions in MPFR with 700 bits: no code and no formula of
/// run/divergence.cc.

#include <mpfr.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace kvsim::oracle {

/// A number of 700 bits.
class Real {
 public:
  Real(double value = 0) { mpfr_init2(x_, 700), mpfr_set_d(x_, value, MPFR_RNDN); }
  Real(const Real& other) { mpfr_init2(x_, 700), mpfr_set(x_, other.x_, MPFR_RNDN); }
  Real& operator=(const Real& other) {
    mpfr_set(x_, other.x_, MPFR_RNDN);
    return *this;
  }
  ~Real() { mpfr_clear(x_); }
  [[nodiscard]] double value() const { return mpfr_get_d(x_, MPFR_RNDN); }
  [[nodiscard]] bool is_zero() const { return mpfr_zero_p(x_) != 0; }

  friend Real operator+(const Real& a, const Real& b) { return apply(mpfr_add, a, b); }
  friend Real operator-(const Real& a, const Real& b) { return apply(mpfr_sub, a, b); }
  friend Real operator*(const Real& a, const Real& b) { return apply(mpfr_mul, a, b); }
  friend Real operator/(const Real& a, const Real& b) { return apply(mpfr_div, a, b); }
  friend Real exp(const Real& a) {
    Real result;
    mpfr_exp(result.x_, a.x_, MPFR_RNDN);
    return result;
  }
  friend Real log(const Real& a) {
    Real result;
    mpfr_log(result.x_, a.x_, MPFR_RNDN);
    return result;
  }

 private:
  template <class Function>
  static Real apply(Function function, const Real& a, const Real& b) {
    Real result;
    function(result.x_, a.x_, b.x_, MPFR_RNDN);
    return result;
  }
  mpfr_t x_;
};

/// e^x ÷ Σ e^x of every logit; 0 for −infinity.
inline std::vector<Real> softmax(std::span<const double> logits) {
  std::vector<Real> result;
  Real sum;
  for (const double logit : logits) {
    result.push_back(std::isinf(logit) ? Real(0) : exp(Real(logit)));
    sum = sum + result.back();
  }
  for (Real& probability : result) probability = probability / sum;
  return result;
}

/// Σ p log(p ÷ q) over probabilities; no q may be 0 where p is not.
inline Real relative_entropy(std::span<const Real> p, std::span<const Real> q) {
  Real sum;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!p[i].is_zero()) sum = sum + p[i] * log(p[i] / q[i]);
  }
  return sum;
}

inline Real jensen_shannon(std::span<const Real> p, std::span<const Real> q) {
  std::vector<Real> middle;
  for (std::size_t i = 0; i < p.size(); ++i) middle.push_back((p[i] + q[i]) / Real(2));
  return (relative_entropy(p, middle) + relative_entropy(q, middle)) / Real(2);
}

}  // namespace kvsim::oracle
