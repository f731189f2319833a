// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// The row of VDPBF16PS against the instruction itself: on this CPU where it has it, and in the
/// golden file of another.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "tests/sim/units/vdpbf16ps_cases.h"
#include "tests/sim/units/vector_set.h"

namespace kvsim {
namespace {

const MatrixUnit& unit() {
  static const MatrixUnit& row = *find_matrix_unit("x86.vdpbf16ps.bf16.f32");
  return row;
}

const std::string& golden_path() {
  static const std::string path =
      std::string(KVSIM_SOURCE_DIR) + "/tests/golden/cpu/vdpbf16ps.safetensors";
  return path;
}

std::vector<std::uint32_t> unit_results() {
  std::vector<std::uint32_t> results(bf16_case_count);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = unit_result(unit(), bf16_case(i));
  return results;
}

TEST(Vdpbf16ps, EqualsThisCpuOnAMillionCases) {
  if (!cpu_has_vdpbf16ps()) {
    std::cout << "skipped: this CPU lacks AVX512-BF16\n";
    GTEST_SKIP() << "this CPU lacks AVX512-BF16";
  }
  std::vector<Bf16Pair> cases(bf16_case_count);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i] = bf16_case(i);
  std::vector<std::uint32_t> found(cases.size());
  cpu_vdpbf16ps(cases, found);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::uint32_t expected = unit_result(unit(), cases[i]);
    if (found[i] == expected || ++wrong > 5) continue;
    const Bf16Pair& each = cases[i];
    ADD_FAILURE() << std::hex << "c " << each.c << " a " << each.a[0] << " " << each.a[1] << " b "
                  << each.b[0] << " " << each.b[1] << ": the unit gives " << expected
                  << ", the CPU " << found[i];
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Vdpbf16ps, EqualsTheGoldenCpu) {
  const VectorSet set = read_vectors(golden_path());
  ASSERT_EQ(set.rows, 1000U);
  const auto [wrong, first] = wrong_rows(unit(), set);
  EXPECT_EQ(wrong, 0U) << "first row " << first;
}

TEST(Vdpbf16ps, HasTheDigestOfTheGoldenCpu) {
  const Result<SafetensorsFile> file = SafetensorsFile::open(golden_path());
  ASSERT_TRUE(file);
  const auto entry =
      std::find_if(file->metadata().begin(), file->metadata().end(),
                   [](const MetadataEntry& each) { return each.key == "sha256_of_all_results"; });
  ASSERT_NE(entry, file->metadata().end());
  EXPECT_EQ(digest_of(unit_results()), entry->text);
}

// The goldens would show every rule that the instruction might have followed instead.
TEST(Vdpbf16ps, GoldenRowsRefuteEveryWrongRule) {
  const VectorSet set = read_vectors(golden_path());
  for (const WrongRule& rule : wrong_rules()) {
    EXPECT_GE(wrong_rows(rule.unit, set).first, 20U) << rule.name;
  }
}

// What the million cases hold: each kind often enough to matter.
TEST(Vdpbf16ps, CasesCoverWhatCanGoWrong) {
  std::size_t nan = 0, subnormal = 0, negative_zero = 0, infinite = 0;
  for (std::size_t i = 0; i < 60'000; ++i) {
    const Bf16Pair each = bf16_case(i);
    const std::uint32_t result = unit_result(unit(), each);
    nan += (result & 0x7fffffff) > 0x7f800000 ? 1 : 0;
    infinite += (result & 0x7fffffff) == 0x7f800000 ? 1 : 0;
    negative_zero += result == 0x80000000 ? 1 : 0;
    subnormal += (each.c & 0x7f800000) == 0 && (each.c & 0x7fffff) != 0 ? 1 : 0;
  }
  for (const std::size_t seen : {nan, subnormal, negative_zero, infinite}) EXPECT_GT(seen, 300U);
}

}  // namespace
}  // namespace kvsim
