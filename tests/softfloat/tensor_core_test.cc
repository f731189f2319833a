// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

/// fused_sum against what tensor cores of six GPUs computed: 500 rows each of d = c + Σ a[k]·b[k]
/// (Leeds, MATLAB-tensor-core), read from the folder that KVSIM_SHARED names.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "softfloat/formats.h"
#include "softfloat/fused_sum.h"
#include "tests/softfloat/failure_log.h"
#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {
namespace {

using namespace softfloat;  // NOLINT: the formats by their names

/// One row of the table in docs/numerics.md: fan-in L, fraction bits F, output conversion.
struct Unit {
  const char* file;
  Format input, output;
  Format conversion;  ///< e8m13 where the unit keeps 13 fraction bits of a binary32
  std::size_t fan_in;
  int fraction_bits;
  int zero_exponent;
};

constexpr Unit kUnits[] = {
    {"v100-f16-f32", binary16, binary32, binary32, 4, 23, -131},
    {"v100-f16-f16", binary16, binary16, binary16, 4, 23, -131},
    {"a100-f16-f32", binary16, binary32, binary32, 8, 24, -132},
    {"a100-f16-f16", binary16, binary16, binary16, 8, 24, -132},
    {"a100-bf16-f32", bfloat16, binary32, binary32, 8, 24, -132},
    {"a100-tf32-f32", tf32, binary32, binary32, 4, 24, -132},
    {"a2-f16-f32", binary16, binary32, binary32, 8, 24, -132},
    {"l40s-bf16-f32", bfloat16, binary32, binary32, 8, 24, -132},
    {"ada-e4m3-f32", e4m3, binary32, e8m13, 16, 13, -132},
    {"ada-e5m2-f32", e5m2, binary32, e8m13, 16, 13, -132},
    {"ada-e4m3-f16", e4m3, binary16, binary16, 16, 13, -132},
    {"l40s-e4m3-f32", e4m3, binary32, e8m13, 16, 13, -132},
    {"h100-f16-f32", binary16, binary32, binary32, 16, 25, -133},
    {"h100-f16-f16", binary16, binary16, binary16, 16, 25, -133},
    {"h100-bf16-f32", bfloat16, binary32, binary32, 16, 25, -133},
    {"h200-f16-f32", binary16, binary32, binary32, 16, 25, -133},
    {"b200-f16-f32", binary16, binary32, binary32, 16, 25, -133},
    {"b200-bf16-f32", bfloat16, binary32, binary32, 16, 25, -133},
};

/// The codes of one tensor of a small, trusted safetensors file.
class Vectors {
 public:
  explicit Vectors(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(stream), {});
    if (bytes_.size() < 8) return;
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), 8);
    header_ = nlohmann::json::parse(bytes_.begin() + 8,
                                    bytes_.begin() + 8 + static_cast<std::ptrdiff_t>(length));
    data_ = 8 + length;
  }

  [[nodiscard]] bool empty() const { return bytes_.size() < 8; }

  [[nodiscard]] std::vector<Bits> tensor(const char* name) const {
    const auto& entry = header_.at(name);
    std::size_t count = 1;
    for (const auto& extent : entry.at("shape")) count *= extent.get<std::size_t>();
    const auto begin = entry.at("data_offsets")[0].get<std::size_t>();
    const auto end = entry.at("data_offsets")[1].get<std::size_t>();
    const std::size_t size = (end - begin) / count;
    std::vector<Bits> codes(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&codes[i], bytes_.data() + data_ + begin + i * size, size);
    }
    return codes;
  }

 private:
  std::string bytes_;
  nlohmann::json header_;
  std::size_t data_ = 0;
};

/// A chain of blocks of `fan_in` products; each takes the block before it as its addend.
Bits chain(const Unit& unit, std::span<const Bits> a, std::span<const Bits> b, Bits c) {
  FusedSum sum;
  sum.fraction_bits = unit.fraction_bits;
  sum.zero_exponent = unit.zero_exponent;
  sum.output = unit.conversion;
  const bool truncates = unit.output == binary32;
  sum.mode.rounding = truncates ? Rounding::toward_zero : Rounding::ties_to_even;
  sum.mode.overflow = Overflow::infinity;
  const int unused = unit.output.precision - unit.conversion.precision;
  for (std::size_t k = 0; k < a.size(); k += unit.fan_in) {
    std::vector<FusedTerm> terms{fused_term(unit.output, c)};
    for (std::size_t i = k; i < std::min(k + unit.fan_in, a.size()); ++i) {
      terms.push_back(fused_product(unit.input, a[i], unit.input, b[i]));
    }
    c = fused_sum(terms, sum).bits << unused;
  }
  return c;
}

TEST(TensorCore, MatchesTheHardwareRows) {
  const char* shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) {
    std::cout << "skipped: no KVSIM_SHARED\n";
    GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  }
  for (const Unit& unit : kUnits) {
    const std::string path =
        std::string(shared) + "/vectors/tensor-cores/" + unit.file + ".safetensors";
    const Vectors file(path);
    ASSERT_FALSE(file.empty()) << path;
    std::vector<Bits> a = file.tensor("a"), b = file.tensor("b");
    const std::vector<Bits> c = file.tensor("c"), d = file.tensor("d");
    ASSERT_EQ(d.size(), 500U) << unit.file;
    if (unit.input == tf32) {  // stored as binary32; the unit reads its upper 19 bits
      for (Bits& x : a) x >>= 13;
      for (Bits& x : b) x >>= 13;
    }
    const std::size_t length = a.size() / d.size();
    std::size_t wrong = 0, first = d.size();
    for (std::size_t i = 0; i < d.size(); ++i) {
      const Bits got = chain(unit, std::span(a).subspan(i * length, length),
                             std::span(b).subspan(i * length, length), c[i]);
      // The hardware's one NaN has all bits set; softfloat's has the quiet bit only.
      const bool both_nan =
          decode(unit.output, got).kind == Kind::nan && decode(unit.output, d[i]).kind == Kind::nan;
      if (got == d[i] || both_nan) continue;
      first = wrong++ == 0 ? i : first;
    }
    EXPECT_EQ(wrong, 0U) << unit.file << ": first wrong row " << first;
  }
}

}  // namespace
}  // namespace kvsim::oracle
