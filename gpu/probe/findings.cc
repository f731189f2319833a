// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/findings.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "gpu/probe/prober.h"
#include "softfloat/host.h"

namespace kvsim::gpu {

using softfloat::Bits;

Prober::Prober(UnitUnderTest& unit, const UnitStructure& structure)
    : unit_(&unit),
      structure_(structure),
      group_(first_group(structure, unit.shape().products)),
      range_(range_of(unit.shape())) {}

std::vector<Bits> Prober::run(std::span<const ProbeRow> rows) {
  if (!error_) {
    auto results = unit_->run(rows);
    if (results) return std::move(*results);
    error_ = results.error();
  }
  return std::vector<Bits>(rows.size(), shape().output.canonical_nan());
}

std::optional<Bits> Prober::code(const Fill& fill) {
  RowBuilder builder(shape());
  if (!fill(builder)) return std::nullopt;
  return run(std::span(&builder.row(), 1)).front();
}

std::optional<double> Prober::value(const Fill& fill) {
  const auto found = code(fill);
  if (!found) return std::nullopt;
  return softfloat::to_double(shape().output, *found);
}

std::vector<double> Prober::values(const Series& series, const FillAt& fill) {
  std::vector<ProbeRow> rows;
  for (int i = 0; i < series.count; ++i) {
    RowBuilder builder(shape());
    if (!fill(builder, series.first + i * series.step)) break;
    rows.push_back(builder.row());
  }
  std::vector<double> values;
  values.reserve(rows.size());
  for (const Bits code : run(rows)) values.push_back(softfloat::to_double(shape().output, code));
  return values;
}

int Prober::quarter(int share) const {
  return group_[group_.size() * static_cast<std::size_t>(share) / 4];
}

void Prober::add(std::string_view name, Seen seen) { found_.push_back({name, std::move(seen)}); }

LastVisible last_visible(std::span<const double> values,
                         const std::function<bool(double)>& visible) {
  LastVisible last;
  std::size_t number = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!visible(values[i])) continue;
    ++number;
    last.steps = static_cast<int>(i);
  }
  last.all = number == values.size();
  last.orderly = static_cast<int>(number) == last.steps + 1;
  return last;
}

Result<Properties> find_properties(UnitUnderTest& unit) {
  const auto found = find_structure(unit);
  if (!found) return found.error();
  const auto& structure = found->structure;
  if (!structure) {
    return Error{ErrorKind::cannot_tell,
                 "no structure of blocks, pairs or accumulators gives what the unit computes"};
  }
  Prober prober(unit, *structure);
  prober.add(property::structure, seen_word(to_string(*structure, unit.shape().products)));
  find_rounding(prober);
  find_fractions(prober);
  find_zero_exponent(prober);
  find_products(prober);
  find_subnormals(prober);
  find_specials(prober);
  if (const auto& error = prober.error()) return *error;
  return prober.properties();
}

}  // namespace kvsim::gpu
