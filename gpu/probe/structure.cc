// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "gpu/probe/row_builder.h"
#include "softfloat/host.h"

namespace kvsim::gpu {
namespace {

/// A sum of terms of two sizes: masks, beside which everything else is lost, and small ones.
struct Marks {
  int masks = 0;
  int ones = 0;
  int steps = 0;  ///< units in the last place of a mask that small ones have made
};

/// What one row of operands marks: c, then the products.
struct Experiment {
  Marks c;
  std::vector<Marks> products;
};

/// How terms are added.
struct Addition {
  bool halves = false;  ///< small terms are half a unit in the last place of a mask, not far below
  bool exact = false;   ///< small terms are lost only where a mask is left
};

/// One addition. Where a mask takes part, small terms are lost, but two halves make a step.
Marks join(std::span<const Marks> terms, Addition addition) {
  Marks sum;
  bool masked = false;
  for (const Marks& term : terms) {
    masked |= term.masks != 0;
    sum.masks += term.masks;
    sum.ones += term.ones;
    sum.steps += term.steps;
  }
  if (addition.exact) masked = sum.masks != 0;
  if (!masked) return sum;
  if (addition.halves) sum.steps += sum.ones / 2;
  sum.ones = 0;
  return sum;
}

Marks join(const Marks& x, const Marks& y, Addition addition) {
  return join(std::array{x, y}, addition);
}

/// The k that block j takes as number i.
int element(const UnitStructure& structure, int j, int i) {
  const int k = j * structure.fan_in + i;
  switch (structure.order) {
    case OperandOrder::odd_before_even:
      return k ^ 1;
    case OperandOrder::pairs_of_four:
      return 4 * (i / 2) + 2 * j + i % 2;
    case OperandOrder::in_turn:
      break;
  }
  return k;
}

/// Sums in pairs until one is left.
Marks pairwise(std::vector<Marks> sums, Addition addition) {
  while (sums.size() > 1) {
    std::vector<Marks> next;
    next.reserve(sums.size() / 2 + 1);
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2) {
      next.push_back(join(sums[i], sums[i + 1], addition));
    }
    if (sums.size() % 2 == 1) next.push_back(sums.back());
    sums = std::move(next);
  }
  return sums.front();
}

/// What an instruction of this structure makes of an experiment.
Marks evaluate(const UnitStructure& structure, const Experiment& experiment, bool halves) {
  const Addition addition{halves, structure.exact};
  const bool last = structure.addend == Addend::last;
  const int products = static_cast<int>(experiment.products.size());
  const auto at = [&](int j, int i) {
    return experiment.products[static_cast<std::size_t>(element(structure, j, i))];
  };
  std::vector<Marks> sums(static_cast<std::size_t>(structure.accumulators));
  sums.front() = last ? Marks{} : experiment.c;
  for (int j = 0; j < products / structure.fan_in; ++j) {
    std::vector<Marks> terms;
    terms.reserve(static_cast<std::size_t>(structure.fan_in) + 1);
    for (int i = 0; i < structure.fan_in; ++i) terms.push_back(at(j, i));
    Marks& sum = sums[static_cast<std::size_t>(j) % sums.size()];
    if (structure.in_pairs) {
      sum = join(sum, pairwise(std::move(terms), addition), addition);
    } else {
      terms.push_back(sum);
      sum = join(terms, addition);
    }
  }
  Marks joined = sums.front();
  for (std::size_t i = 1; i < sums.size(); ++i) joined = join(joined, sums[i], addition);
  return last ? join(experiment.c, joined, addition) : joined;
}

/// Every structure, the plainest first.
std::vector<UnitStructure> candidates(int products) {
  std::vector<UnitStructure> all;
  for (const Addend addend : {Addend::first, Addend::last}) {
    for (const OperandOrder order :
         {OperandOrder::in_turn, OperandOrder::odd_before_even, OperandOrder::pairs_of_four}) {
      for (int fan_in = products; fan_in >= 1; --fan_in) {
        if (products % fan_in != 0) continue;
        if (order == OperandOrder::odd_before_even && products % 2 != 0) continue;
        if (order == OperandOrder::pairs_of_four && (fan_in < 2 || 2 * fan_in != products))
          continue;
        UnitStructure structure{.fan_in = fan_in, .order = order, .addend = addend};
        all.push_back(structure);
        if (fan_in > 1) {
          structure.exact = true;
          all.push_back(structure);
          structure.exact = false;
        }
        if (fan_in == 2 || fan_in == 4) {
          structure.in_pairs = true;
          all.push_back(structure);
        }
        if (fan_in == 1 && products % 2 == 0) {
          structure.accumulators = 2;
          all.push_back(structure);
        }
      }
    }
  }
  return all;
}

constexpr Marks mask{.masks = 1};
constexpr Marks minus_mask{.masks = -1};
constexpr Marks one{.ones = 1};

/// Two masks that cancel, and ones: those that are left were added after the masks had met. Also c
/// alone beside masks: it is left where it is added after them.
std::vector<Experiment> hiding_experiments(int products) {
  std::vector<Experiment> all;
  const auto size = static_cast<std::size_t>(products);
  all.reserve(size * (size + 3) / 2);
  for (std::size_t j = 0; j < size; ++j) {
    Experiment with_c{mask, std::vector<Marks>(size, one)};
    with_c.products[j] = minus_mask;
    all.push_back(std::move(with_c));
    for (std::size_t i = 0; i < j; ++i) {
      Experiment pair{{}, std::vector<Marks>(size, one)};
      pair.products[i] = mask;
      pair.products[j] = minus_mask;
      all.push_back(std::move(pair));
    }
    if (j == 0) continue;
    Experiment late{one, std::vector<Marks>(size)};
    late.products[0] = mask;
    late.products[j] = minus_mask;
    all.push_back(std::move(late));
  }
  return all;
}

/// A mask as c and two halves of its unit in the last place.
std::vector<Experiment> adding_experiments(int products) {
  std::vector<Experiment> all;
  const auto size = static_cast<std::size_t>(products);
  all.reserve(size * size / 2);
  for (std::size_t j = 0; j < size; ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      Experiment pair{mask, std::vector<Marks>(size)};
      pair.products[i] = one;
      pair.products[j] = one;
      all.push_back(std::move(pair));
    }
  }
  return all;
}

/// The exponents of masks and of small terms.
struct Sizes {
  int mask = 0;
  int one = 0;
};

Result<ProbeRow> operands(const UnitShape& shape, const Experiment& experiment, Sizes sizes) {
  RowBuilder builder(shape);
  bool fits = true;
  const auto exponent = [&](const Marks& term) { return term.masks != 0 ? sizes.mask : sizes.one; };
  const auto any = [](const Marks& term) { return term.masks != 0 || term.ones != 0; };
  if (any(experiment.c)) fits &= builder.addend_power(exponent(experiment.c));
  for (std::size_t k = 0; k < experiment.products.size(); ++k) {
    const Marks& term = experiment.products[k];
    if (!any(term)) continue;
    fits &= builder.product(static_cast<int>(k), exponent(term), term.masks < 0);
  }
  if (!fits) return Error{ErrorKind::cannot_tell, "the numbers of this unit reach not far enough"};
  return builder.row();
}

/// The smallest exponent, counted from c, of a product that changes c = 2^e: one less than the
/// precision.
Result<int> visible_beside_addend(UnitUnderTest& unit) {
  constexpr int most = 60;
  const UnitShape& shape = unit.shape();
  std::vector<ProbeRow> rows;
  std::vector<softfloat::Bits> unchanged;
  for (int t = 1; t <= std::min(most, range_of(shape).output_largest); ++t) {
    RowBuilder builder(shape);
    if (!builder.addend_power(t) || !builder.product(0, 0)) break;
    rows.push_back(builder.row());
    unchanged.push_back(builder.row().c);
  }
  const auto results = unit.run(rows);
  if (!results) return results.error();
  int visible = 0;
  for (std::size_t i = 0; i < results->size(); ++i) {
    if ((*results)[i] != unchanged[i]) visible = static_cast<int>(i) + 1;
  }
  return visible;
}

/// What a result shows, in small terms; nothing where it is none of the results that can be.
std::optional<int> count(const UnitShape& shape, softfloat::Bits d, Sizes sizes, bool halves) {
  const double value = softfloat::to_double(shape.output, d);
  if (!std::isfinite(value)) return std::nullopt;
  const double left = halves ? value - std::ldexp(1.0, sizes.mask) : value;
  const double number = std::ldexp(left, -(halves ? sizes.one + 1 : sizes.one));
  if (number != std::floor(number) || number < 0 || number > 4096) return std::nullopt;
  return static_cast<int>(number);
}

/// How far apart masks and small terms must be: more than any unit keeps, and the sum of 64 of
/// them.
constexpr int least_gap = 32;
constexpr int wide_gap = 45;

}  // namespace

std::string to_string(const UnitStructure& structure, int products) {
  std::string text;
  if (structure.fan_in == 1) {
    text = products == 1 ? "1 product" : fmt::format("{} products in turn", products);
    if (structure.accumulators > 1)
      text += fmt::format(", {} accumulators", structure.accumulators);
  } else {
    const int blocks = products / structure.fan_in;
    text = fmt::format("{} block{} of {}", blocks, blocks == 1 ? "" : "s", structure.fan_in);
    if (structure.in_pairs) text += " joined in pairs";
    if (structure.exact) text += " summed exactly";
  }
  if (structure.order == OperandOrder::odd_before_even) text += ", odd k first";
  if (structure.order == OperandOrder::pairs_of_four) text += " (k mod 4 = 0, 1, then 2, 3)";
  return text + (structure.addend == Addend::last ? ", c last" : ", c first");
}

std::vector<int> first_group(const UnitStructure& structure, int products) {
  std::vector<int> group;
  if (structure.fan_in == 1) {
    for (int j = 0; j < products; j += structure.accumulators) {
      group.push_back(element(structure, j, 0));
    }
    return group;
  }
  group.reserve(static_cast<std::size_t>(structure.fan_in));
  for (int i = 0; i < structure.fan_in; ++i) group.push_back(element(structure, 0, i));
  return group;
}

std::vector<int> last_group(const UnitStructure& structure, int products) {
  if (structure.fan_in == 1) return first_group(structure, products);
  std::vector<int> group;
  group.reserve(static_cast<std::size_t>(structure.fan_in));
  for (int i = 0; i < structure.fan_in; ++i) {
    group.push_back(element(structure, products / structure.fan_in - 1, i));
  }
  return group;
}

UnitStructure structure_of(const MatrixUnit& unit) {
  UnitStructure structure{.fan_in = unit.fan_in,
                          .order = unit.order,
                          .addend = unit.addend,
                          .in_pairs = unit.operation == UnitOperation::ftz_add_mul,
                          .exact = unit.operation == UnitOperation::e_fdpa};
  if (unit.operation != UnitOperation::fma) return structure;
  structure.fan_in = 1;
  structure.accumulators = unit.accumulators;
  return structure;
}

Result<StructureFinding> find_structure(UnitUnderTest& unit) {
  const UnitShape& shape = unit.shape();
  const ProbeRange range = range_of(shape);
  Sizes sizes{std::min(range.largest, range.output_largest - 1),
              std::max(range.smallest_normal, range.output_normal)};
  if (sizes.mask - sizes.one < wide_gap) {
    sizes.one = std::max(range.smallest, range.output_smallest);
  }
  const bool halves = sizes.mask - sizes.one < least_gap;
  if (halves) {
    const auto visible = visible_beside_addend(unit);
    if (!visible) return visible.error();
    sizes = {*visible + 1, 0};
  }
  const auto experiments =
      halves ? adding_experiments(shape.products) : hiding_experiments(shape.products);
  std::vector<ProbeRow> rows;
  rows.reserve(experiments.size());
  for (const Experiment& experiment : experiments) {
    auto row = operands(shape, experiment, sizes);
    if (!row) return row.error();
    rows.push_back(std::move(*row));
  }
  const auto results = unit.run(rows);
  if (!results) return results.error();
  StructureFinding finding;
  finding.blocks_only = halves;
  for (const UnitStructure& candidate : candidates(shape.products)) {
    bool fits = true;
    for (std::size_t i = 0; fits && i < rows.size(); ++i) {
      const Marks expected = evaluate(candidate, experiments[i], halves);
      fits = count(shape, (*results)[i], sizes, halves) ==
             std::optional(halves ? expected.steps : expected.ones);
    }
    if (!fits) continue;
    finding.structure = candidate;
    break;
  }
  return finding;
}

}  // namespace kvsim::gpu
