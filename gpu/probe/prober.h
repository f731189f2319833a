// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gpu/probe/property.h"
#include "gpu/probe/row_builder.h"
#include "gpu/probe/structure.h"

namespace kvsim::gpu {

/// What the parts of find_properties() share: the unit, its structure, and what was found so far. A
/// failure of the unit is kept; from then on every result is NaN and nothing is run.
class Prober {
 public:
  Prober(UnitUnderTest& unit, const UnitStructure& structure);

  /// One row: `fill` gives operands and says whether they exist.
  using Fill = std::function<bool(RowBuilder&)>;
  /// d of a row as a code; nothing where the operands do not exist.
  [[nodiscard]] std::optional<softfloat::Bits> code(const Fill& fill);
  [[nodiscard]] std::optional<double> value(const Fill& fill);

  /// Runs `fill(builder, t)` for t = first, first + step … until operands do not exist or `count`
  /// rows are made, all in one call, and gives their values.
  using FillAt = std::function<bool(RowBuilder&, int)>;
  struct Series {
    int first = 0;
    int step = 1;
    int count = 64;
  };
  [[nodiscard]] std::vector<double> values(const Series& series, const FillAt& fill);

  [[nodiscard]] const UnitShape& shape() const { return unit_->shape(); }
  [[nodiscard]] const ProbeRange& range() const { return range_; }
  [[nodiscard]] const UnitStructure& structure() const { return structure_; }
  /// The products of the first block, or of the first accumulator.
  [[nodiscard]] const std::vector<int>& group() const { return group_; }
  /// A product of that group: `share` quarters of it in.
  [[nodiscard]] int quarter(int share) const;
  /// Products share a rounding.
  [[nodiscard]] bool fused() const { return structure_.fan_in > 1 && !structure_.in_pairs; }
  [[nodiscard]] bool addend_first() const { return structure_.addend == Addend::first; }

  void add(std::string_view name, Seen seen);
  [[nodiscard]] Seen found(std::string_view name) const { return find_property(found_, name); }
  [[nodiscard]] const Properties& properties() const { return found_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  [[nodiscard]] std::vector<softfloat::Bits> run(std::span<const ProbeRow> rows);

  UnitUnderTest* unit_;
  UnitStructure structure_;
  std::vector<int> group_;
  ProbeRange range_;
  Properties found_;
  std::optional<Error> error_;
};

/// The last of a series of rows, counted from its first, that shows something, and whether all do.
struct LastVisible {
  int steps = -1;  ///< −1: none
  bool all = false;
  bool orderly = true;  ///< everything before it shows too
};
[[nodiscard]] LastVisible last_visible(std::span<const double> values,
                                       const std::function<bool(double)>& visible);

/// The parts of find_properties(), in this order.
void find_rounding(Prober& prober);
void find_fractions(Prober& prober);
void find_zero_exponent(Prober& prober);
void find_subnormals(Prober& prober);
void find_products(Prober& prober);
void find_specials(Prober& prober);

}  // namespace kvsim::gpu
