// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// The lanes against the softfloat reference (sim/sum.h), on every SIMD level of this CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "sim/engine/columns.h"
#include "sim/engine/program.h"
#include "softfloat/arithmetic.h"
#include "softfloat/exact_sum.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;

constexpr std::uint32_t canonical_nan = 0x7fc00000;

/// splitmix64: a generator that gives the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
  }
  std::int64_t from(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }

 private:
  std::uint64_t state_;
};

std::vector<Format> lane_formats() {
  std::vector<Format> list;
  for (const softfloat::NamedFormat& f : softfloat::formats()) {
    if (f.format.precision <= 24 && f.format.has_sign) list.push_back(f.format);
  }
  return list;
}

std::string permutation_of(Random& random, std::int64_t n) {
  std::vector<std::int64_t> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  for (std::size_t i = p.size(); i > 1; --i) {
    std::swap(p[i - 1], p[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  std::string text = "perm(";
  for (const std::int64_t x : p) text += (text.back() == '(' ? "" : ",") + std::to_string(x);
  return text + ")";
}

/// Now and then merge=, partials= and running= with formats that the accumulator holds.
std::string random_merging(Random& random, const Format& accumulator) {
  const std::vector<std::string> merges{"", ",merge=reverse", ",merge=pairwise", ",merge=halving",
                                        ",merge=butterfly"};
  std::string text = random.pick(merges);
  for (const char* key : {",partials=", ",running="}) {
    if (random.below(3) != 0) continue;
    const Format format = random.pick(lane_formats());
    const Order order{{{.kind = OrderKind::split, .size = 1, .partials = format}}};
    if (!check_formats(order, accumulator, accumulator)) continue;
    text += key + std::string(softfloat::format_name(format));
  }
  return text;
}

std::string random_order(Random& random, std::int64_t n, const Format& accumulator) {
  const auto number = [&](std::int64_t high) { return std::to_string(random.from(1, high)); };
  const std::vector<std::string> leaves{
      "sequential", "sequential(init=zero)", "pairwise",       "halving",         "reverse",
      "exact",      "pairwise(init=zero)",   "numpy-pairwise", "torch-cascade(4)"};
  const std::vector<std::string> joins{"", ",join=halving", ",join=sequential", ",join=butterfly"};
  const std::vector<std::string> tails{"", ",tail=scalar", ",tail=scalar-first", ",init=zero"};
  std::string text;
  if (n > 0 && n < 40 && random.below(4) == 0) text = permutation_of(random, n) + "/";
  for (std::int64_t depth = random.below(3); depth > 0; --depth) {
    switch (random.below(4)) {
      case 0:
        text += "blocks(" + number(40) + random_merging(random, accumulator) + ")/";
        break;
      case 1:
        text += "split(" + number(9) + ",multiple=" + number(4) +
                random_merging(random, accumulator) + ")/";
        break;
      case 2:
        text += "reverse/";
        break;
      default:
        text += "lanes(" + number(17) + "," + number(4) + random.pick(joins) + random.pick(tails) +
                ")/";
        break;
    }
  }
  return text + random.pick(leaves);
}

/// Which numbers a case draws.
enum class Taste { ordinary, few_bits, tiny, huge, anything };

Bits random_code(Random& random, const Format& f, Taste taste) {
  const Bits sign = random.below(2) == 0 ? 0 : f.sign_bit();
  const Bits trailing = random.bits() & f.trailing_mask();
  const std::int64_t top = (std::int64_t{1} << f.exponent_bits) - 1;
  std::int64_t field = f.bias - 2 + random.below(5);
  Bits significand = trailing;
  switch (taste) {
    case Taste::ordinary:
      break;
    case Taste::few_bits:
      significand &= ~(f.trailing_mask() >> 2);
      break;
    case Taste::tiny:
      field = random.below(f.bias / 2 + 3);
      break;
    case Taste::huge:
      field = top - 1 - random.below(top / 2 + 1);
      break;
    case Taste::anything: {
      const Bits code = random.bits() & f.code_mask();
      if (random.below(20) != 0) return code;
      return f.has_infinity() ? sign | f.infinity() : code;
    }
  }
  field = std::clamp<std::int64_t>(field, 0, f.has_infinity() ? top - 1 : top);
  return sign | (static_cast<Bits>(field) << f.trailing_bits()) | significand;
}

std::uint32_t float_code(const Format& f, Bits bits) {
  if (softfloat::is_nan(f, bits)) return canonical_nan;
  return static_cast<std::uint32_t>(softfloat::from_float(softfloat::to_float(f, bits)));
}

/// A problem with its inputs as codes and as floats.
struct Case {
  ColumnsProblem problem;
  std::vector<Bits> a_codes, b_codes;
  std::vector<float> a, b;
  std::string name;
};

Case make_case(Random& random, const Format& input, const Format& accumulator, Product product,
               std::int64_t terms, std::int64_t columns, Taste taste) {
  Case c;
  const std::string order = random_order(random, terms, accumulator);
  const Result<Order> parsed = parse_order(order);
  EXPECT_TRUE(parsed.has_value()) << order;
  c.problem = {.order = *parsed,
               .product = product,
               .input = input,
               .accumulator = accumulator,
               .terms = terms,
               .columns = columns,
               .stride = columns + random.below(3)};
  const bool plain = random.below(4) == 0;
  const Bits one = softfloat::convert(input, softfloat::binary32, softfloat::from_float(1.0F)).bits;
  for (std::int64_t k = 0; k < terms; ++k) {
    c.a_codes.push_back(plain ? one : random_code(random, input, taste));
    c.a.push_back(softfloat::to_float(input, c.a_codes.back()));
    for (std::int64_t j = 0; j < c.problem.stride; ++j) {
      c.b_codes.push_back(random_code(random, input, taste));
      c.b.push_back(softfloat::to_float(input, c.b_codes.back()));
    }
  }
  if (!plain) c.problem.a = c.a.data();
  c.problem.b = c.b.data();
  c.name = std::string(softfloat::format_name(input)) + " into " +
           std::string(softfloat::format_name(accumulator)) + ", " +
           std::string(to_string(product)) + (plain ? " plain" : "") + ", " + order + ", " +
           std::to_string(terms) + " terms";
  return c;
}

std::vector<Bits> column_of(const Case& c, std::int64_t j) {
  std::vector<Bits> column;
  for (std::int64_t k = 0; k < c.problem.terms; ++k) {
    column.push_back(c.b_codes[static_cast<std::size_t>(k * c.problem.stride + j)]);
  }
  return column;
}

std::vector<std::uint32_t> expected_of(const Case& c) {
  std::vector<std::uint32_t> expected;
  for (std::int64_t j = 0; j < c.problem.columns; ++j) {
    const softfloat::Rounded sum = sum_products(c.problem.order, c.problem.product, c.problem.input,
                                                c.problem.accumulator, c.a_codes, column_of(c, j));
    expected.push_back(float_code(c.problem.accumulator, sum.bits));
  }
  return expected;
}

/// Runs the case at every level and compares; true when all columns agree.
bool agrees(const Case& c, const std::vector<std::uint32_t>& expected, int threads, bool bounds) {
  for (const SimdLevel level : list_simd_levels()) {
    std::vector<float> out(expected.size(), -1.0F);
    std::vector<double> bound(bounds ? expected.size() : 0);
    const Result<bool> done =
        sum_columns(c.problem, out, bound, {.threads = threads, .level = level});
    EXPECT_TRUE(done.has_value()) << done.error().message;
    for (std::size_t j = 0; j < out.size(); ++j) {
      const auto code = static_cast<std::uint32_t>(softfloat::from_float(out[j]));
      EXPECT_EQ(code, expected[j])
          << std::hex << c.name << std::dec << ", column " << j << " of " << out.size() << ", "
          << simd_level_name(level) << ", " << threads << " threads";
      if (code != expected[j]) return false;
    }
  }
  return true;
}

/// Every pair of formats and product rule.
template <class Check>
void for_each_combination(Check check) {
  for (const Format& input : lane_formats()) {
    for (const Format& accumulator : lane_formats()) {
      for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
        check(input, accumulator, product);
      }
    }
  }
}

TEST(Engine, EqualsTheReferenceForAllFormatsOrdersAndLevels) {
  Random random(1);
  int failures = 0;
  for_each_combination([&](const Format& input, const Format& accumulator, Product product) {
    for (const Taste taste :
         {Taste::ordinary, Taste::few_bits, Taste::tiny, Taste::huge, Taste::anything}) {
      if (failures > 5) return;
      const std::int64_t terms = random.below(10) == 0 ? random.below(3) : random.from(0, 60);
      const Case c =
          make_case(random, input, accumulator, product, terms, random.from(1, 24), taste);
      const int threads = random.pick(std::vector<int>{1, 2, 7});
      failures += agrees(c, expected_of(c), threads, random.below(2) == 0) ? 0 : 1;
    }
  });
}

// The formats that people use, with the shapes that meet every path: blocks, single vectors, too
// few columns for a vector, and several threads.
TEST(Engine, EqualsTheReferenceForLongSumsAndManyColumns) {
  using softfloat::bfloat16;
  using softfloat::binary16;
  using softfloat::binary32;
  Random random(2);
  int failures = 0;
  for (const Format& accumulator : {binary16, bfloat16, binary32, softfloat::e8m13}) {
    for (const Format& input : {binary16, bfloat16, binary32}) {
      for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
        for (const std::int64_t columns : {1, 3, 5, 15, 16, 17, 63, 64, 65, 70, 200}) {
          if (failures > 5) return;
          const std::int64_t terms = random.from(0, columns < 100 ? 300 : 30);
          const Taste taste = random.below(3) == 0 ? Taste::tiny : Taste::ordinary;
          const Case c = make_case(random, input, accumulator, product, terms, columns, taste);
          const std::vector<std::uint32_t> expected = expected_of(c);
          for (const int threads : {1, 2, 7}) {
            failures += agrees(c, expected, threads, threads == 2) ? 0 : 1;
          }
        }
      }
    }
  }
}

// Products whose exact value lies below the last bit of a float, where multiplying in float and
// rounding again would sometimes round twice. Random sums hardly ever meet such a case.
TEST(Engine, TinyProductsRoundOnce) {
  Random random(5);
  for (const Format& input : {softfloat::bfloat16, softfloat::tf32}) {
    const auto significands = static_cast<std::int64_t>(input.trailing_mask()) + 1;
    for (const Format& accumulator : {softfloat::bfloat16, softfloat::tf32, softfloat::e8m13}) {
      for (int exponent = -142; exponent <= -126; ++exponent) {
        for (int repeat = 0; repeat < 12; ++repeat) {
          const int a_exponent = exponent / 2;
          const Bits a = (static_cast<Bits>(a_exponent + input.bias) << input.trailing_bits()) |
                         (random.bits() & input.trailing_mask());
          const float a_value = softfloat::to_float(input, a);
          std::vector<Bits> b;
          std::vector<float> b_values;
          for (std::int64_t i = 0; i < significands; ++i) {
            b.push_back(
                (static_cast<Bits>(exponent - a_exponent + input.bias) << input.trailing_bits()) |
                static_cast<Bits>(i));
            b_values.push_back(softfloat::to_float(input, b.back()));
          }
          const ColumnsProblem problem{.order = {},
                                       .input = input,
                                       .accumulator = accumulator,
                                       .terms = 1,
                                       .columns = significands,
                                       .stride = significands,
                                       .a = &a_value,
                                       .b = b_values.data()};
          std::vector<float> out(b.size());
          ASSERT_TRUE(sum_columns(problem, out).has_value());
          for (std::size_t j = 0; j < out.size(); ++j) {
            const Bits sum =
                sum_products({}, Product::rounded, input, accumulator, {&a, 1}, {&b[j], 1}).bits;
            ASSERT_EQ(softfloat::from_float(out[j]), float_code(accumulator, sum))
                << softfloat::format_name(input) << " into " << softfloat::format_name(accumulator)
                << std::hex << ": 0x" << a << " × 0x" << b[j];
          }
        }
      }
    }
  }
}

// |out − exact| on the exact accumulator, rounded away from zero.
double error_of(const Case& c, std::int64_t j, float out) {
  softfloat::ExactAccumulator sum;
  const std::vector<Bits> column = column_of(c, j);
  for (std::size_t k = 0; k < column.size(); ++k) {
    sum.add_product(c.problem.input, c.a_codes[k], c.problem.input, column[k]);
  }
  sum.add(-static_cast<double>(out));
  const double error =
      softfloat::to_double(softfloat::binary64, sum.round(softfloat::binary64).bits);
  return std::nextafter(std::fabs(error), HUGE_VAL);
}

double magnitude_of(const Case& c, std::int64_t j) {
  double sum = 0;
  const std::vector<Bits> column = column_of(c, j);
  for (std::size_t k = 0; k < column.size(); ++k) {
    sum += std::fabs(softfloat::to_double(c.problem.input, c.a_codes[k]) *
                     softfloat::to_double(c.problem.input, column[k]));
  }
  return sum;
}

TEST(Engine, RunningBoundHolds) {
  Random random(3);
  double largest_ratio = 0;
  for_each_combination([&](const Format& input, const Format& accumulator, Product product) {
    for (const Taste taste : {Taste::ordinary, Taste::tiny, Taste::huge, Taste::anything}) {
      const Case c = make_case(random, input, accumulator, product, random.from(1, 50),
                               random.from(1, 20), taste);
      std::vector<float> out(static_cast<std::size_t>(c.problem.columns));
      std::vector<double> bound(out.size());
      const SimdLevel level = random.pick(list_simd_levels());
      ASSERT_TRUE(sum_columns(c.problem, out, bound, {.level = level}).has_value());
      for (std::size_t j = 0; j < out.size(); ++j) {
        if (!std::isfinite(out[j])) {
          ASSERT_EQ(bound[j], HUGE_VAL) << c.name;
          continue;
        }
        if (!std::isfinite(bound[j])) continue;
        const auto column = static_cast<std::int64_t>(j);
        const double error = error_of(c, column, out[j]);
        const double least =
            std::nextafter(0.0, 1.0);  // error_of() rounds an exact zero up to this
        ASSERT_LE(error, std::max(bound[j], least)) << c.name << ", column " << j;
        if (bound[j] > 0) largest_ratio = std::max(largest_ratio, error / bound[j]);
        // Each partial sum is at most the sum of magnitudes, but for its own roundings.
        if (accumulator.precision < 8 || taste != Taste::ordinary) continue;
        if (!rounds_to_accumulator_only(c.problem.order)) continue;
        const double u = std::ldexp(1.0, -accumulator.precision);
        const double levels = static_cast<double>(height(c.problem.order, c.problem.terms)) + 2;
        ASSERT_LE(bound[j], 1.5 * levels * u * magnitude_of(c, column) + 1e-30 +
                                static_cast<double>(c.problem.terms) * u *
                                    std::ldexp(1.0, accumulator.emin()))
            << c.name << ", column " << j;
      }
    }
  });
  EXPECT_GT(largest_ratio, 0.5);  // one rounding half an ulp off comes close to its bound
}

// Rounding 1 + 2^−9 to bfloat16 gives 1: the bound covers that 2^−9, and is not much more than the
// 2^−8 that the roundoff of bfloat16 allows.
TEST(Engine, BoundCoversRoundingToAnotherFormat) {
  const std::vector<float> b{1.0F, 0x1p-9F};
  const ColumnsProblem problem{.order = *parse_order("split(1,partials=bfloat16)"),
                               .input = softfloat::binary32,
                               .accumulator = softfloat::binary32,
                               .terms = 2,
                               .columns = 1,
                               .stride = 1,
                               .b = b.data()};
  for (const SimdLevel level : list_simd_levels()) {
    std::vector<float> out(1);
    std::vector<double> bound(1);
    ASSERT_TRUE(sum_columns(problem, out, bound, {.level = level}).has_value());
    EXPECT_EQ(out[0], 1.0F);
    EXPECT_GE(bound[0], 0x1p-9);
    EXPECT_LE(bound[0], 0x1.01p-8);
  }
}

TEST(Engine, BoundIsInfiniteWhereAFormatMaySaturate) {
  const Format format = softfloat::e3m2;  // largest number 28
  const std::vector<float> b{28, 28, -28};
  const ColumnsProblem problem{.order = {},
                               .input = format,
                               .accumulator = format,
                               .terms = 3,
                               .columns = 1,
                               .stride = 1,
                               .b = b.data()};
  std::vector<float> out(1);
  std::vector<double> bound(1);
  ASSERT_TRUE(sum_columns(problem, out, bound).has_value());
  EXPECT_EQ(out[0], 0.0F);  // 28 + 28 saturates to 28
  EXPECT_EQ(bound[0], HUGE_VAL);
}

TEST(Engine, RoundsFloatsAsSoftfloatConverts) {
  Random random(4);
  std::vector<float> values;
  for (std::uint32_t high = 0; high <= 0xffff; ++high) {
    for (const std::uint32_t low :
         {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU, 0x1000U, 0x3000U, 0x0fffU, 0x1001U,
          0x0200U, 0x0600U, 0x01ffU, static_cast<std::uint32_t>(random.below(0x10000))}) {
      values.push_back(std::bit_cast<float>((high << 16) | low));
    }
  }
  for (const Format& format : lane_formats()) {
    std::vector<std::uint32_t> expected;
    for (const float x : values) {
      const softfloat::Rounded r =
          softfloat::convert(format, softfloat::binary32, softfloat::from_float(x));
      expected.push_back(float_code(format, r.bits));
    }
    for (const SimdLevel level : list_simd_levels()) {
      std::vector<float> out(values.size());
      ASSERT_TRUE(round_values(format, values, out, level).has_value());
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), expected[i])
            << softfloat::format_name(format) << ", " << simd_level_name(level) << std::hex
            << ", float code " << std::bit_cast<std::uint32_t>(values[i]);
      }
    }
  }
}

TEST(EngineProgram, LongSumsStayShort) {
  const auto steps = [](const char* order, std::int64_t n) {
    return engine::compile_order(*parse_order(order), n).steps.size();
  };
  EXPECT_EQ(steps("sequential", 1'000'000), 1U);
  EXPECT_EQ(steps("reverse", 1'000'000), 1U);
  EXPECT_LE(steps("lanes(16,4)", 1'000'000), 2U * 64);
  EXPECT_LE(steps("split(8)", 1'000'000), 2U * 8);
  EXPECT_LE(steps("pairwise", 1024), 2U * 512);
  EXPECT_LE(engine::compile_order(*parse_order("pairwise"), 1 << 20).slots, 21);
}

TEST(EngineLevels, NamesAndErrors) {
  const std::vector<SimdLevel> levels = list_simd_levels();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.front(), SimdLevel::scalar);
  EXPECT_EQ(*select_simd_level(""), levels.back());
  EXPECT_EQ(*select_simd_level("auto"), best_simd_level());
  for (const SimdLevel level : levels) EXPECT_EQ(*select_simd_level(simd_level_name(level)), level);
  const Result<SimdLevel> unknown = select_simd_level("avx9");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().kind, ErrorKind::usage);
  EXPECT_EQ(unknown.error().message,
            "SIMD level 'avx9' is unknown; accepted: auto, avx512, avx2, scalar");
}

TEST(EngineErrors, NameTheThing) {
  const std::vector<float> b(4, 1.0F);
  ColumnsProblem good{.order = {},
                      .input = softfloat::binary16,
                      .accumulator = softfloat::binary32,
                      .terms = 2,
                      .columns = 2,
                      .stride = 2,
                      .b = b.data()};
  std::vector<float> out(2);
  ASSERT_TRUE(sum_columns(good, out).has_value());
  EXPECT_EQ(out, (std::vector<float>{2, 2}));
  const auto message = [&](const ColumnsProblem& problem, const EngineOptions& options = {}) {
    const Result<bool> result = sum_columns(problem, out, {}, options);
    return result ? std::string("no error") : result.error().message;
  };
  ColumnsProblem bad = good;
  bad.accumulator = softfloat::binary64;
  EXPECT_NE(message(bad).find("binary64"), std::string::npos);
  bad = good;
  bad.stride = 1;
  EXPECT_NE(message(bad).find("stride 1"), std::string::npos);
  bad = good;
  bad.columns = 1;
  EXPECT_NE(message(bad).find("2 results for 1 columns"), std::string::npos);
  bad = good;
  bad.order = *parse_order("blocks(2)/mma(h100.f16.f32)");
  EXPECT_NE(message(bad).find("take no matrix unit"), std::string::npos);
  bad.order = *parse_order("perm(0,1,2)");
  EXPECT_NE(message(bad), "no error");
  EXPECT_NE(message(good, {.threads = 0}).find("0 threads"), std::string::npos);
}

}  // namespace
}  // namespace kvsim
