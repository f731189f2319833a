// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// Every unit against what tensor cores of eight GPUs computed: 48 sets of 500 rows (Leeds,
/// MATLAB-tensor-core), read from the folder that KVSIM_SHARED names; and how many rows show a
/// parameter that is off by one, so that the sets are known to prove something.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "tests/sim/units/vector_set.h"

namespace kvsim {
namespace {

struct NamedSet {
  std::string name;  ///< of the unit: "h100.f16.f32"
  MatrixUnit unit;
  VectorSet set;
};

class HardwareRows : public testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("KVSIM_SHARED");
    if (shared == nullptr) {
      std::cout << "skipped: no KVSIM_SHARED\n";
      GTEST_SKIP() << "skipped: no KVSIM_SHARED";
    }
    const std::filesystem::path folder = std::filesystem::path(shared) / "vectors" / "tensor-cores";
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      std::string name = path.stem().string();
      for (char& c : name) c = c == '-' ? '.' : c;
      const Result<MatrixUnit> unit = parse_matrix_unit(name);
      ASSERT_TRUE(unit) << unit.error().message;
      sets_.push_back({name, *unit, read_vectors(path.string())});
      ASSERT_EQ(sets_.back().set.rows, 500U) << name;
    }
    ASSERT_EQ(sets_.size(), 48U);
  }

  [[nodiscard]] const NamedSet& set(std::string_view name) const {
    for (const NamedSet& each : sets_) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << name;
    return sets_.front();
  }

  std::vector<NamedSet> sets_;
};

std::size_t wrong_with(const NamedSet& named, int fraction_bits, int fan_in, int blocks) {
  MatrixUnit unit = named.unit;
  unit.fraction_bits += fraction_bits;
  unit.fan_in = fan_in == 0 ? unit.fan_in : fan_in;
  unit.blocks = blocks == 0 ? unit.blocks : blocks;
  return wrong_rows(unit, named.set).first;
}

bool is_emulated(const MatrixUnit& unit) { return unit.order == OperandOrder::pairs_of_four; }

TEST_F(HardwareRows, AreRepeatedBitForBit) {
  for (const NamedSet& each : sets_) {
    EXPECT_EQ(each.unit.evidence, softfloat::Evidence::measured) << each.name;
    const auto [wrong, first] = wrong_rows(each.unit, each.set);
    EXPECT_EQ(wrong, 0U) << each.name << " (" << each.unit.name << "), first row " << first;
  }
}

TEST_F(HardwareRows, ShowAFractionBitMoreOrLess) {
  struct Rate {
    const char* name;
    std::size_t more, less;
  };
  // Counted before this program was written, by integer arithmetic in another language.
  constexpr Rate rates[] = {
      {"v100.f16.f32", 125, 242}, {"a100.f16.f32", 66, 176}, {"h100.f16.f32", 55, 121},
      {"h100.bf16.f32", 15, 57},  {"h200.tf32.f32", 14, 46}, {"ada.e4m3.f32", 161, 268},
      {"h100.e4m3.f32", 95, 191}, {"v100.f16.f16", 0, 0},    {"a100.f16.f16", 0, 0},
      {"h100.f16.f16", 0, 0},
  };
  for (const Rate& rate : rates) {
    EXPECT_EQ(wrong_with(set(rate.name), 1, 0, 0), rate.more) << rate.name;
    EXPECT_EQ(wrong_with(set(rate.name), -1, 0, 0), rate.less) << rate.name;
  }
  // No other set is blind to F, but those with binary16 output.
  for (const NamedSet& each : sets_) {
    if (each.unit.output == softfloat::binary16 || is_emulated(each.unit)) continue;
    EXPECT_GE(wrong_with(each, 1, 0, 0), 10U) << each.name;
    EXPECT_GE(wrong_with(each, -1, 0, 0), 40U) << each.name;
  }
}

TEST_F(HardwareRows, ShowHalfTheFanIn) {
  for (const NamedSet& each : sets_) {
    if (is_emulated(each.unit)) continue;
    const std::size_t wrong = wrong_with(each, 0, each.unit.fan_in / 2, 2 * each.unit.blocks);
    // K is 4 in the files of tf32, and L is 8 on Hopper and Blackwell: half of it changes nothing.
    const bool cannot_tell = each.unit.input == softfloat::tf32 && each.unit.fan_in == 8;
    if (cannot_tell) {
      EXPECT_EQ(wrong, 0U) << each.name;
    } else {
      EXPECT_GE(wrong, 35U) << each.name;
      EXPECT_LE(wrong, 180U) << each.name;
    }
  }
}

TEST_F(HardwareRows, OfEmulatedInstructionsFitNoSingleBlock) {
  std::size_t emulated = 0;
  for (const NamedSet& each : sets_) {
    if (!is_emulated(each.unit)) continue;
    ++emulated;
    MatrixUnit native = each.unit;
    native.input = native.operand;
    native.order = OperandOrder::in_turn;
    native.addend = Addend::first;
    native.fan_in = 32;
    native.blocks = 1;
    native.fraction_bits = each.name.starts_with("b200") ? 25 : 13;
    EXPECT_GE(wrong_rows(native, each.set).first, 148U) << each.name;
    // Nor do two blocks that take k in turn, nor an addend that enters the first block. With
    // binary32 output the sums of these rows are exact, so that they show the latter only.
    MatrixUnit in_turn = each.unit;
    in_turn.order = OperandOrder::in_turn;
    const bool hidden = each.unit.output == softfloat::binary32;
    EXPECT_EQ(wrong_rows(in_turn, each.set).first > 0, !hidden) << each.name;
    MatrixUnit addend_first = each.unit;
    addend_first.addend = Addend::first;
    EXPECT_GT(wrong_rows(addend_first, each.set).first, 0U) << each.name;
  }
  EXPECT_EQ(emulated, 8U);
}

}  // namespace
}  // namespace kvsim
