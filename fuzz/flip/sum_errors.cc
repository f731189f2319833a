// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>

#include "fuzz/flip/bound_plan.h"
#include "sim/units/matrix_unit.h"

namespace kvsim::fuzz {
namespace {

Error no_bound_of(const Order& order) {
  return {ErrorKind::usage,
          fmt::format("order {}: no bound on its error is known", to_string(order))};
}

Result<SumErrors> of_unit(const Order& order, const MatrixUnit& unit) {
  SumErrors sum;
  sum.is_chain = true;
  const std::optional<UnitErrors> errors = unit_errors(unit);
  if (!errors || errors->rounds_every_term) {
    return Error{ErrorKind::usage,
                 fmt::format("matrix unit {}: no bound on its error is known", to_string(unit))};
  }
  if (order.items.size() != 1 || unit.addend != Addend::first ||
      unit.order == OperandOrder::pairs_of_four) {
    return no_bound_of(order);
  }
  sum.chain = *errors;
  return sum;
}

}  // namespace

SumErrors SumErrors::of_height(double height) {
  SumErrors sum;
  const double product = height * binary32_roundoff;
  sum.relative = product < 0.5 ? outward(product / (1 - product)) : no_bound;
  return sum;
}

SumErrors SumErrors::term_by_term(const RoundingUnits& units, double roundings) {
  SumErrors sum;
  sum.is_chain = true;
  sum.chain.conversion = units.unit_roundoff;
  sum.chain.quantum = units.half_quantum;
  sum.products = 1.01 * roundings * binary32_roundoff;
  return sum;
}

Result<SumErrors> SumErrors::of_order(const Order& order, Product product, std::int64_t terms) {
  if (const auto unit = unit_of(order)) return of_unit(order, *unit);
  if (!rounds_to_accumulator_only(order)) return no_bound_of(order);
  const double roundings = product == Product::rounded ? 1 : 0;
  const OrderKind outermost = order.items.empty() ? OrderKind::sequential : order.items[0].kind;
  if (outermost == OrderKind::exact) return of_height(2);
  if (order.items.size() <= 1 && outermost == OrderKind::sequential) {
    return term_by_term(RoundingUnits(softfloat::binary32), roundings);
  }
  return of_height(static_cast<double>(height(order, terms)) + roundings);
}

Result<SumErrors> SumErrors::of_linear(const LinearKernel& kernel, const LinearShape& shape) {
  const auto plan = plan_linear(kernel, shape);
  if (!plan) return plan.error();
  double most = 0;
  for (const LinearColumns& columns : plan->columns) {
    if (!rounds_to_accumulator_only(columns.order)) return no_bound_of(columns.order);
    most = std::max(most, static_cast<double>(height(columns.order, shape.terms)));
  }
  if (plan->rule->accumulator != softfloat::binary32) {
    return Error{ErrorKind::usage,
                 fmt::format("linear kernel {}: no bound on its error is known", kernel.name)};
  }
  // Terms that go before the order begins are added one by one.
  return of_height(most + plan->rule->leading_modulus + 1);
}

}  // namespace kvsim::fuzz
