// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/mutants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

namespace kvsim::fuzz {
namespace {

constexpr std::int64_t most_runs = 1000;

bool can_run(const MutantRow& row) { return has_mutants || row.mutant == Mutant::none; }

// The table that it prints is the kill table: a fault, its property, the run that finds it.
TEST(Mutants, AreKilled) {
  std::set<std::string_view> killed;
  std::int64_t runs = 0;
  fmt::print("{:10}  {:24}  {:28}  {:>4}  {:>7}\n", "area", "mutant", "killed by", "runs", "ms");
  for (const MutantRow& row : mutant_rows()) {
    if (!can_run(row)) continue;
    const auto start = std::chrono::steady_clock::now();
    const auto tally = kill(row, 0, most_runs);
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    if (!tally) {
      ADD_FAILURE() << row.name << " is not found by " << row.killed_by << " in " << most_runs
                    << " runs";
      continue;
    }
    runs += tally->runs;
    killed.insert(row.name);
    fmt::print("{:10}  {:24}  {:28}  {:4}  {:7.0f}\n", row.area, row.name, row.killed_by,
               tally->runs, passed.count());
  }
  fmt::print("{} mutants killed in {} runs\n", killed.size(), runs);
  EXPECT_GE(killed.size(), has_mutants ? 40U : 11U);
}

TEST(Mutants, AreAllInTheTable) {
  std::set<Mutant> mutants;
  std::set<Plant> planted;
  std::set<std::string_view> used;
  for (const MutantRow& row : mutant_rows()) {
    EXPECT_NE(row.mutant == Mutant::none, row.plant == Plant::none) << row.name;
    if (row.plant != Plant::none) {
      EXPECT_EQ(row.name, kvsim::to_string(row.plant));
      planted.insert(row.plant);
    } else {
      mutants.insert(row.mutant);
    }
    used.insert(row.killed_by);
    ASSERT_TRUE(find_property(row.killed_by)) << row.killed_by;
  }
  EXPECT_EQ(mutants.size(), static_cast<std::size_t>(last_mutant));
  EXPECT_EQ(planted.size(), plants().size());
  // Those that kill nothing are shown to fail in property_test.cc.
  const std::set<std::string_view> shown_elsewhere{"canary", "probes-find-the-tree"};
  for (const Property& property : properties()) {
    EXPECT_NE(used.contains(property.name), shown_elsewhere.contains(property.name))
        << property.name;
  }
}

}  // namespace
}  // namespace kvsim::fuzz
