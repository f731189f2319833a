// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/running_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/error_bounds.h"
#include "sim/units/matrix_unit.h"

namespace kvsim {
namespace {

/// A node's exact sum and a bound on the distance of the computed one.
struct Partial {
  double sum = 0;
  double bound = 0;

  /// The computed number's magnitude, from above.
  [[nodiscard]] double magnitude() const { return std::abs(sum) + bound; }
};

/// How a matrix unit's block errs. Of a truncating one, with M a power of two at or below the
/// largest of the terms' alignments and |c|:
/// - T-FDPA cuts every product and c to multiples of 2^−F M: each loses less than 2^−F M.
/// - TR-FDPA cuts the products at F bits below their own largest exponent, so that each loses less
///   than 2^−F M; rounds their sum down to a multiple of 2^−(F2 + 1) M and c to one of 2^−F M,
///   which loses less than one multiple each; and rounds the total s down at F2 bits of its own
///   exponent: less than 2^−F2 |s|, or 2^−F2 times the smallest normal number.
/// - GTR-FDPA is TR-FDPA with two sums, of even and odd k. Before they are added each is rounded
///   down to a multiple of 2^−F M. c may be dropped, where it is below 2^−(F + 1) M.
/// Then all of them convert to the output's format.
struct UnitErrors {
  bool is_truncating = false;      ///< terms are cut at F bits below the largest
  bool rounds_every_term = false;  ///< fma
  double cut = 0;                  ///< 2^−F
  int cuts_beside_products = 1;    ///< how often `cut` is lost but for once a product
  double sum_cut = 0;              ///< 2^−(F2 + 1) of the sum of the products
  double final_cut = 0;            ///< 2^−F2 of the total
  double floor = 0;                ///< magnitude that a zero term has in the alignment
  double conversion = 0;           ///< relative error of the output's conversion
  double quantum = 0;              ///< its absolute error where the output is subnormal
};

std::optional<UnitErrors> errors_of(const MatrixUnit& unit) {
  UnitErrors errors;
  switch (unit.operation) {
    case UnitOperation::fma:
      errors.rounds_every_term = true;
      break;
    case UnitOperation::e_fdpa:
      break;
    case UnitOperation::t_fdpa:
      errors.is_truncating = true;
      errors.cut = std::ldexp(1.0, -unit.fraction_bits);
      errors.floor = std::ldexp(1.0, unit.zero_exponent);
      break;
    case UnitOperation::tr_fdpa:
    case UnitOperation::gtr_fdpa:
      errors.is_truncating = true;
      errors.cut = std::ldexp(1.0, -unit.fraction_bits);
      errors.cuts_beside_products = unit.operation == UnitOperation::gtr_fdpa ? 3 : 1;
      errors.sum_cut = std::ldexp(1.0, -unit.final_bits - 1);
      errors.final_cut = unit.final_rounding_down ? std::ldexp(1.0, -unit.final_bits) : 0;
      errors.floor = RoundingUnits(unit.output).smallest_normal;
      break;
    default:
      return std::nullopt;
  }
  const RoundingUnits units(unit.output);
  errors.conversion = unit.conversion == OutputConversion::rz_e8m13  ? 0x1p-13
                      : unit.conversion == OutputConversion::rz_fp32 ? 2 * units.unit_roundoff
                                                                     : units.unit_roundoff;
  errors.quantum = 2 * units.half_quantum;
  return errors;
}

/// One term, and a power of two above that of its exponent where a unit aligns it. The exponent of
/// a subnormal factor is that of the smallest normal number.
struct Factors {
  double product = 0;
  double alignment = 0;
};

std::vector<Factors> multiplied(const softfloat::Format& input, std::span<const double> a,
                                std::span<const double> b) {
  const double smallest = RoundingUnits(input).smallest_normal;
  std::vector<Factors> factors(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    factors[i].product = a[i] * b[i];
    if (factors[i].product == 0) continue;
    factors[i].alignment = std::max(std::abs(a[i]), smallest) * std::max(std::abs(b[i]), smallest);
  }
  return factors;
}

/// Walks a tree from its terms to its root.
class BoundWalk {
 public:
  BoundWalk(const SumTree& tree, const softfloat::Format& accumulator,
            const std::vector<Factors>& factors, const UnitErrors& unit)
      : tree_(tree), units_(accumulator), factors_(factors), unit_(unit) {}

  double run() {
    std::vector<Partial> partials;
    partials.reserve(tree_.nodes.size());
    for (const SumNode& node : tree_.nodes) partials.push_back(visit(node, partials));
    return partials.empty() ? 0 : outward(partials.back().bound);
  }

 private:
  /// One rounding to the accumulator of what `exact` is computed from.
  static Partial rounded(const RoundingUnits& units, Partial exact) {
    exact.bound += rounding_error_before(units, exact.magnitude());
    return exact;
  }

  [[nodiscard]] Partial term(std::int64_t index) const {
    return rounded(units_, {factors_[static_cast<std::size_t>(index)].product, 0});
  }

  [[nodiscard]] static Partial joined(const Partial& a, const Partial& b) {
    return {a.sum + b.sum, a.bound + b.bound};
  }

  [[nodiscard]] Partial visit(const SumNode& node, const std::vector<Partial>& done) const {
    const auto at = [&](std::int32_t index) {
      return index < 0 ? Partial{} : done[static_cast<std::size_t>(index)];
    };
    switch (node.kind) {
      case SumNodeKind::zero:
        return {};
      case SumNodeKind::term:
        return term(node.first);
      case SumNodeKind::add_term:
        return rounded(units_, joined(at(node.left), term(node.first)));
      case SumNodeKind::add:
        return rounded(units_, joined(at(node.left), at(node.right)));
      case SumNodeKind::exact:
        return rounded(units_, all_terms(node).total);
      case SumNodeKind::unit_block:
        return block(node, at(node.left));
      case SumNodeKind::unit_add:
        return converted(joined(at(node.left), at(node.right)));
      case SumNodeKind::rounded:
        break;
    }
    const RoundingUnits narrow(tree_.formats[static_cast<std::size_t>(node.first)]);
    return rounded(narrow, at(node.left));
  }

  struct Terms {
    Partial total;
    double largest = 0;
    double absolute = 0;
  };
  [[nodiscard]] Terms all_terms(const SumNode& node) const {
    Terms terms;
    for (std::int64_t i = node.first; i < node.first + node.count; ++i) {
      const std::int64_t index = tree_.terms[static_cast<std::size_t>(i)];
      if (index == SumTree::zero_term) continue;
      const Factors& each = factors_[static_cast<std::size_t>(index)];
      terms.total.sum += each.product;
      terms.largest = std::max(terms.largest, each.alignment);
      terms.absolute += std::abs(each.product);
    }
    return terms;
  }

  [[nodiscard]] Partial converted(Partial partial) const {
    partial.bound += unit_.conversion * partial.magnitude() + unit_.quantum;
    return partial;
  }

  [[nodiscard]] Partial block(const SumNode& node, const Partial& addend) const {
    const Terms terms = all_terms(node);
    Partial result = joined(addend, terms.total);
    if (unit_.rounds_every_term) {
      // Every partial sum of the chain is at most the addend plus all terms in magnitude.
      result.bound += static_cast<double>(node.count + 1) *
                      (unit_.conversion * (addend.magnitude() + terms.absolute) + unit_.quantum);
      return result;
    }
    if (unit_.is_truncating) {
      const double largest = std::max({terms.largest, addend.magnitude(), unit_.floor});
      const auto cuts = static_cast<double>(node.count + unit_.cuts_beside_products);
      result.bound += (cuts * unit_.cut + unit_.sum_cut) * largest;
      result.bound += unit_.final_cut * std::max(result.magnitude(), unit_.floor);
    }
    return converted(result);
  }

  const SumTree& tree_;
  RoundingUnits units_;
  const std::vector<Factors>& factors_;
  UnitErrors unit_;
};

}  // namespace

std::optional<double> running_bound(const SumTree& tree, const softfloat::Format& input,
                                    const softfloat::Format& accumulator, std::span<const double> a,
                                    std::span<const double> b) {
  UnitErrors unit;  // not read where the tree has no unit
  if (!tree.unit.empty()) {
    const Result<MatrixUnit> row = parse_matrix_unit(tree.unit);
    if (!row) return std::nullopt;
    const std::optional<UnitErrors> errors = errors_of(*row);
    if (!errors) return std::nullopt;
    unit = *errors;
  }
  const std::vector<Factors> factors = multiplied(input, a, b);
  return BoundWalk(tree, accumulator, factors, unit).run();
}

}  // namespace kvsim
