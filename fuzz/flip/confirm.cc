// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/confirm.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sim/sum.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

constexpr mpfr_prec_t bits = 256;

/// A number of 256 bits that frees itself.
class Number {
 public:
  Number() {
    mpfr_init2(value_, bits);
    mpfr_set_zero(value_, 1);
  }
  Number(const Number& other) : Number() { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Number& operator=(const Number& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);  // equal precision: exact
    return *this;
  }
  ~Number() { mpfr_clear(value_); }

  [[nodiscard]] mpfr_ptr get() { return value_; }
  [[nodiscard]] mpfr_srcptr get() const { return value_; }

 private:
  mpfr_t value_;
};

/// Two numbers that enclose what is exact: `low` is rounded down, `high` up.
struct Interval {
  Number low;
  Number high;

  /// Adds a·b, exact at this precision.
  void add_product(double a, double b) {
    Number product;
    mpfr_set_d(product.get(), a, MPFR_RNDN);
    mpfr_mul_d(product.get(), product.get(), b, MPFR_RNDN);
    mpfr_add(low.get(), low.get(), product.get(), MPFR_RNDD);
    mpfr_add(high.get(), high.get(), product.get(), MPFR_RNDU);
  }
  void add(const Interval& other) {
    mpfr_add(low.get(), low.get(), other.low.get(), MPFR_RNDD);
    mpfr_add(high.get(), high.get(), other.high.get(), MPFR_RNDU);
  }
  /// Times a number that is not negative.
  [[nodiscard]] Interval times(const Interval& weight) const {
    Interval result;
    mpfr_mul(result.low.get(), low.get(),
             mpfr_signbit(low.get()) != 0 ? weight.high.get() : weight.low.get(), MPFR_RNDD);
    mpfr_mul(result.high.get(), high.get(),
             mpfr_signbit(high.get()) != 0 ? weight.low.get() : weight.high.get(), MPFR_RNDU);
    return result;
  }
  /// Divided by a number that is positive.
  [[nodiscard]] Interval divided_by(const Interval& by) const {
    Interval result;
    mpfr_div(result.low.get(), low.get(),
             mpfr_signbit(low.get()) != 0 ? by.low.get() : by.high.get(), MPFR_RNDD);
    mpfr_div(result.high.get(), high.get(),
             mpfr_signbit(high.get()) != 0 ? by.high.get() : by.low.get(), MPFR_RNDU);
    return result;
  }
};

Interval root_of(std::int64_t n) {
  Interval root;
  mpfr_sqrt_ui(root.low.get(), static_cast<unsigned long>(n), MPFR_RNDD);
  mpfr_sqrt_ui(root.high.get(), static_cast<unsigned long>(n), MPFR_RNDU);
  return root;
}

void add_dot(Interval& sum, std::span<const float> a, std::span<const float> b, double sign) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum.add_product(a[i], sign * static_cast<double>(b[i]));
  }
}

/// One head's share of the difference: Σ e^(s_j − top) y_j ÷ Σ e^(s_j − top) for any `top`.
Interval head_share(const std::vector<Interval>& scores, const std::vector<Interval>& values) {
  const Interval& top = *std::ranges::max_element(scores, [](const Interval& a, const Interval& b) {
    return mpfr_less_p(a.low.get(), b.low.get()) != 0;
  });
  Interval sum;
  Interval total;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    // The same number is taken off every score: top.low, exactly.
    Interval weight;
    mpfr_sub(weight.low.get(), scores[j].low.get(), top.low.get(), MPFR_RNDD);
    mpfr_sub(weight.high.get(), scores[j].high.get(), top.low.get(), MPFR_RNDU);
    mpfr_exp(weight.low.get(), weight.low.get(), MPFR_RNDD);
    mpfr_exp(weight.high.get(), weight.high.get(), MPFR_RNDU);
    sum.add(weight);
    total.add(values[j].times(weight));
  }
  return total.divided_by(sum);
}

Interval exact_difference(const FlipCase& flip_case) {
  const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
  Interval difference;
  if (flip_case.shape.kind == CaseKind::sum) {
    const std::span<const float> state(flip_case[CaseTensor::state]);
    add_dot(difference, state, tokens.first(state.size()), 1);
    add_dot(difference, state, tokens.last(state.size()), -1);
    return difference;
  }
  const AttentionShape& shape = flip_case.shape.attention;
  const auto d = static_cast<std::size_t>(shape.head_dim);
  const auto keys = static_cast<std::size_t>(shape.kv_len);
  const std::span<const float> q(flip_case[CaseTensor::q]);
  const std::span<const float> k(flip_case[CaseTensor::k]);
  const std::span<const float> v(flip_case[CaseTensor::v]);
  const Interval root = root_of(shape.head_dim);
  for (std::size_t h = 0; h < static_cast<std::size_t>(shape.query_heads); ++h) {
    const std::size_t first_key = h / static_cast<std::size_t>(shape.group()) * keys;
    std::vector<Interval> scores(keys);
    std::vector<Interval> values(keys);
    for (std::size_t j = 0; j < keys; ++j) {
      add_dot(scores[j], q.subspan(h * d, d), k.subspan((first_key + j) * d, d), 1);
      scores[j] = scores[j].divided_by(root);
      const auto value = v.subspan((first_key + j) * d, d);
      add_dot(values[j], value, tokens.subspan(h * d, d), 1);
      add_dot(values[j], value, tokens.subspan(tokens.size() / 2 + h * d, d), -1);
    }
    difference.add(head_share(scores, values));
  }
  return difference;
}

/// The first token's computed logit less the second's; nothing where a logit is not finite.
std::optional<Interval> computed_difference(const FlipScorer& scorer, const FlipCase& flip_case,
                                            std::size_t path) {
  const CaseShape& shape = flip_case.shape;
  const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
  Interval difference;
  if (shape.kind == CaseKind::sum) {
    const auto state = codes(shape.storage, flip_case[CaseTensor::state]);
    for (std::size_t token = 0; token < 2; ++token) {
      const auto row = codes(shape.storage, tokens.subspan(token * state.size(), state.size()));
      const double logit = softfloat::to_double(
          shape.accumulator, sum_products(shape.orders[path], shape.product, shape.storage,
                                          shape.accumulator, state, row)
                                 .bits);
      if (!std::isfinite(logit)) return std::nullopt;
      difference.add_product(logit, token == 0 ? 1 : -1);
    }
    return difference;
  }
  const std::vector<float> outputs = scorer.outputs(flip_case, path, SimdLevel::scalar);
  if (outputs.empty() || !std::ranges::all_of(outputs, [](float x) { return std::isfinite(x); })) {
    return std::nullopt;
  }
  if (const auto logits = scorer.logits(outputs, flip_case, path, SimdLevel::scalar)) {
    if (!std::isfinite((*logits)[0]) || !std::isfinite((*logits)[1])) return std::nullopt;
    difference.add_product((*logits)[0], 1);
    difference.add_product((*logits)[1], -1);
    return difference;
  }
  add_dot(difference, outputs, tokens.first(outputs.size()), 1);
  add_dot(difference, outputs, tokens.last(outputs.size()), -1);
  return difference;
}

/// How far the two are apart at least.
double least_distance(const Interval& a, const Interval& b) {
  Number above;
  Number below;
  mpfr_sub(above.get(), a.low.get(), b.high.get(), MPFR_RNDD);
  mpfr_sub(below.get(), b.low.get(), a.high.get(), MPFR_RNDD);
  return std::max({0.0, mpfr_get_d(above.get(), MPFR_RNDD), mpfr_get_d(below.get(), MPFR_RNDD)});
}

}  // namespace

double Confirmation::apart() const {
  const ConfirmedPath& on = paths[path_on];
  const ConfirmedPath& off = paths[path_off];
  if (!on.finite || !off.finite) return 0;
  return std::max({0.0, on.lowest - off.highest, off.lowest - on.highest});
}

Result<Confirmation> confirm(const FlipScorer& scorer, const FlipCase& flip_case) {
  const Interval exact = exact_difference(flip_case);
  Confirmation result;
  result.lowest = mpfr_get_d(exact.low.get(), MPFR_RNDD);
  result.highest = mpfr_get_d(exact.high.get(), MPFR_RNDU);
  if (!std::isfinite(result.lowest) || !std::isfinite(result.highest)) {
    return Error{ErrorKind::cannot_tell, "the exact logits are beyond the range of binary64"};
  }
  for (const std::size_t path : {path_on, path_off}) {
    result.tokens[path] = -1;
    const std::optional<Interval> computed = computed_difference(scorer, flip_case, path);
    if (!computed) continue;
    const int low = mpfr_sgn(computed->low.get());
    if (low != mpfr_sgn(computed->high.get())) {
      return Error{ErrorKind::cannot_tell, "256 bits do not tell the logits apart"};
    }
    result.tokens[path] = low >= 0 ? 0 : 1;
    result.paths[path] = {.finite = true,
                          .lowest = mpfr_get_d(computed->low.get(), MPFR_RNDD),
                          .highest = mpfr_get_d(computed->high.get(), MPFR_RNDU),
                          .least_error = least_distance(*computed, exact)};
  }
  return result;
}

}  // namespace kvsim::fuzz
