// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/running_bound.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/error_bounds.h"
#include "sim/units/matrix_unit.h"
#include "sim/units/unit_errors.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

/// A node's exact sum and a bound on the distance of the computed one.
struct Partial {
  double sum = 0;
  double bound = 0;

  /// The computed number's magnitude, from above.
  [[nodiscard]] double magnitude() const { return std::abs(sum) + bound; }
};

/// One term, the power of two of its exponent where a unit aligns it, and one that it is a multiple
/// of. The exponent of a subnormal factor is that of the smallest normal number.
struct Factors {
  double product = 0;
  double alignment = 0;
  double quantum = 0;
};

std::vector<Factors> multiplied(const softfloat::Format& input, std::span<const double> a,
                                std::span<const double> b) {
  const RoundingUnits units(input);
  const double smallest = units.smallest_normal;
  const double ulp = 2 * units.unit_roundoff;
  std::vector<Factors> factors(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    factors[i].product = a[i] * b[i];
    if (factors[i].product == 0) continue;
    factors[i].alignment =
        std::max(power_of_exponent(a[i]), smallest) * std::max(power_of_exponent(b[i]), smallest);
    factors[i].quantum = ulp * ulp * factors[i].alignment;
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

  /// Less than one cut each, and less than the term itself; nothing of a multiple of the cut.
  [[nodiscard]] double cut_of_terms(const SumNode& node, double cut) const {
    double lost = 0;
    for (std::int64_t i = node.first; i < node.first + node.count; ++i) {
      const std::int64_t index = tree_.terms[static_cast<std::size_t>(i)];
      if (index == SumTree::zero_term) continue;
      const Factors& each = factors_[static_cast<std::size_t>(index)];
      if (each.quantum < cut) lost += std::min(std::abs(each.product), cut);
    }
    return lost;
  }

  [[nodiscard]] double cut_of_addend(const Partial& addend, double cut) const {
    const double surely = std::abs(addend.sum) - addend.bound;
    if (surely >= cut * unit_.addend_ulps) return 0;
    return unit_.addend_rounds_down ? cut : std::min(addend.magnitude(), cut);
  }

  [[nodiscard]] Partial converted(Partial partial) const {
    partial.bound +=
        std::max(unit_.conversion * power_of_exponent(partial.magnitude()), unit_.quantum);
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
      const double largest =
          std::max({terms.largest, power_of_exponent(addend.magnitude()), unit_.floor});
      const double cut = unit_.cut * largest;
      result.bound += cut * (unit_.cuts_beside_products - 1) + unit_.sum_cut * largest;
      result.bound += cut_of_addend(addend, cut);
      result.bound += cut_of_terms(node, cut);
      result.bound += unit_.final_cut * std::max(result.magnitude(), unit_.floor);
    }
    return converted(result);
  }

  const SumTree& tree_;
  RoundingUnits units_;
  const std::vector<Factors>& factors_;
  UnitErrors unit_;
};

/// The number that a unit multiplies where it drops bits of its operands.
double as_read(const MatrixUnit& unit, double x) {
  const softfloat::Mode mode{.rounding = unit.operand_rounding == OperandRounding::truncate
                                             ? softfloat::Rounding::toward_zero
                                             : softfloat::Rounding::ties_to_away};
  return softfloat::to_double(
      unit.input,
      softfloat::convert(unit.input, softfloat::binary64, softfloat::from_double(x), mode).bits);
}

}  // namespace

std::optional<double> running_bound(const SumTree& tree, const softfloat::Format& input,
                                    const softfloat::Format& accumulator, std::span<const double> a,
                                    std::span<const double> b) {
  UnitErrors unit;  // not read where the tree has no unit
  std::vector<double> read_a;
  std::vector<double> read_b;
  double lost = 0;  // by reading the operands
  if (!tree.unit.empty()) {
    const Result<MatrixUnit> row = parse_matrix_unit(tree.unit);
    if (!row) return std::nullopt;
    const std::optional<UnitErrors> errors = unit_errors(*row);
    if (!errors) return std::nullopt;
    unit = *errors;
    if (row->input.precision < row->operand.precision) {
      read_a.reserve(a.size());
      read_b.reserve(b.size());
      for (std::size_t k = 0; k < a.size(); ++k) {
        read_a.push_back(as_read(*row, a[k]));
        read_b.push_back(as_read(*row, b[k]));
        lost += std::abs(a[k] * b[k] - read_a.back() * read_b.back());
      }
      a = read_a;
      b = read_b;
    }
  }
  const std::vector<Factors> factors = multiplied(input, a, b);
  const double bound = BoundWalk(tree, accumulator, factors, unit).run();
  return lost == 0 ? bound : outward(bound + lost);
}

}  // namespace kvsim
