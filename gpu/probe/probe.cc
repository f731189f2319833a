// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/probe/probe.h"

#include <algorithm>
#include <utility>

#include "gpu/probe/random_rows.h"

namespace kvsim::gpu {

bool UnitProbe::equal() const {
  return different == 0 && !no_structure &&
         std::ranges::none_of(properties, [](const ComparedProperty& property) {
           return property.agrees.has_value() && !*property.agrees;
         });
}

Result<UnitProbe> probe_unit(UnitUnderTest& unit, const MatrixUnit& row,
                             const ProbeOptions& options) {
  RecordedUnit recorded(unit);
  UnitProbe probe;
  const auto found = find_properties(recorded);
  if (found) {
    const Properties declared = declared_properties(row);
    probe.properties.reserve(found->size());
    for (const Property& one : *found) {
      ComparedProperty compared{std::string(one.name), one.seen, find_property(declared, one.name),
                                std::nullopt};
      compared.agrees = agrees(compared.seen, compared.declared);
      probe.properties.push_back(std::move(compared));
    }
  } else if (found.error().kind == ErrorKind::cannot_tell) {
    probe.no_structure = found.error().message;
  } else {
    return found.error();
  }
  const auto random = random_rows(unit.shape(), options.random_rows, options.seed);
  const auto results = recorded.run(random);
  if (!results) return results.error();
  probe.rows = recorded.rows();
  probe.results = recorded.results();
  for (std::size_t i = probe.rows.size(); i-- > 0;) {
    if (probe.results[i] == simulate_row(row, probe.rows[i])) continue;
    ++probe.different;
    probe.first_different = i;
  }
  return probe;
}

}  // namespace kvsim::gpu
