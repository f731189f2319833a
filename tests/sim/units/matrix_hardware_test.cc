// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// \file
/// The 48 sets of hardware rows through products of matrices, at every SIMD level: row i of a and
/// column i of b are the operands of row i of the set, and the diagonal is what the GPU computed
/// (in blocks of 20 rows and columns).
/// And longer products of every unit against unit_dot().

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "tests/sim/units/matrix_cases.h"
#include "tests/sim/units/vector_set.h"

namespace kvsim {
namespace {

std::vector<float> floats(const softfloat::Format& format,
                          const std::vector<softfloat::Bits>& codes) {
  std::vector<float> out;
  for (const softfloat::Bits code : codes) out.push_back(softfloat::to_float(format, code));
  return out;
}

TEST(UnitMatrixHardware, RepeatsEverySetInLanes) {
  const char* shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) {
    std::cout << "skipped: no KVSIM_SHARED\n";
    GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  }
  std::size_t sets = 0;
  const std::filesystem::path folder = std::filesystem::path(shared) / "vectors" / "tensor-cores";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++sets;
    std::string name = entry.path().stem().string();
    std::ranges::replace(name, '-', '.');
    const Result<MatrixUnit> unit = parse_matrix_unit(name);
    ASSERT_TRUE(unit) << unit.error().message;
    const VectorSet set = read_vectors(entry.path().string());
    ASSERT_EQ(set.rows, 500U) << name;
    const std::vector<float> a = floats(unit->operand, set.a);
    const std::vector<float> b = floats(unit->operand, set.b);
    const std::vector<float> addends = floats(unit->output, set.c);
    constexpr std::size_t block = 20;
    std::vector<float> c(block * block), out(block * block);
    const auto terms = static_cast<std::int64_t>(set.k);
    for (const SimdLevel level : list_simd_levels()) {
      std::size_t wrong = 0;
      for (std::size_t first = 0; first < set.rows; first += block) {
        for (std::size_t i = 0; i < c.size(); ++i) c[i] = addends[first + i / block];
        const UnitProblem problem{.unit = &*unit,
                                  .rows = block,
                                  .terms = terms,
                                  .columns = block,
                                  .a = a.data() + first * set.k,
                                  .a_stride = terms,
                                  .b = b.data() + first * set.k,
                                  .b_stride = terms,
                                  .b_transposed = true,
                                  .c = c.data(),
                                  .c_stride = block};
        const Result<bool> done = multiply_on_unit(problem, out.data(), block, {.level = level});
        ASSERT_TRUE(done) << done.error().message;
        for (std::size_t i = 0; i < block; ++i) {
          const softfloat::Bits got = code_of(unit->output, out[i * block + i]);
          wrong += got == set.d[first + i] ? 0 : 1;
        }
      }
      EXPECT_EQ(wrong, 0U) << name << " at " << simd_level_name(level);
    }
  }
  EXPECT_EQ(sets, 48U);
}

TEST(UnitMatrixLong, EqualsUnitDot) {
  std::uint64_t seed = 1;
  for (const MatrixUnit& unit : matrix_units()) {
    if (!engine_takes(unit)) continue;
    for (std::uint64_t kind = 0; kind <= oracle::mixes; ++kind, ++seed) {
      const MatrixShape shape{.rows = static_cast<std::int64_t>(1 + seed % 9),
                              .terms = kind == 1 ? 1024 : static_cast<std::int64_t>(1 + seed % 100),
                              .columns = static_cast<std::int64_t>(1 + oracle::mix(seed) % 70),
                              .gap = static_cast<std::int64_t>(seed % 4),
                              .b_transposed = oracle::mix(seed) % 3 == 0,
                              .has_addend = oracle::mix(seed + 1) % 4 != 0};
      const MatrixCase each = matrix_case(unit, shape, mixed_numbers(seed + 9000, kind));
      ASSERT_TRUE(levels_agree(unit, each, "kind " + std::to_string(kind)));
    }
  }
}

}  // namespace
}  // namespace kvsim
