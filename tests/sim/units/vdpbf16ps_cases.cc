// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/units/vdpbf16ps_cases.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "sim/philox.h"
#include "sim/units/dot.h"
#include "softfloat/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace kvsim {
namespace {

using softfloat::Bits;

/// Random words of one case.
class Words {
 public:
  explicit Words(std::uint64_t i) : i_(i) {}
  std::uint32_t operator()() {
    const std::uint64_t bits = philox_bits(2026, n_++, i_);
    return static_cast<std::uint32_t>(bits >> 32);
  }

 private:
  std::uint64_t i_;
  std::uint64_t n_ = 0;
};

/// A bfloat16 with its exponent field in [low, low + count).
std::uint16_t bf16(Words& words, std::uint32_t low, std::uint32_t count) {
  const std::uint32_t word = words();
  return static_cast<std::uint16_t>((word & 0x807f) | (low + (word >> 16) % count) << 7);
}

std::uint32_t fp32(Words& words, std::uint32_t low, std::uint32_t count) {
  const std::uint32_t field = low + words() % count;
  return (words() & 0x807fffff) | field << 23;
}

std::uint16_t special(Words& words) {
  constexpr std::array<std::uint16_t, 16> codes{0x0000, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
                                                0x7f81, 0xffbf, 0x0001, 0x807f, 0x0080, 0x8080,
                                                0x7f7f, 0xff7f, 0x3f80, 0xbf80};
  return codes[words() % codes.size()];
}

}  // namespace

Bf16Pair bf16_case(std::uint64_t i) {
  Words words(i);
  Bf16Pair out;
  const auto fill = [&](std::uint32_t low, std::uint32_t count) {
    for (int j = 0; j < 2; ++j) {
      out.a[j] = bf16(words, low, count);
      out.b[j] = bf16(words, low, count);
    }
  };
  switch (i % 7) {
    case 0:  // any codes
      for (int j = 0; j < 2; ++j) {
        out.a[j] = static_cast<std::uint16_t>(words());
        out.b[j] = static_cast<std::uint16_t>(words());
      }
      out.c = words();
      break;
    case 1:  // overlap and cancellation
      fill(124, 7);
      out.c = fp32(words, 124, 7);
      break;
    case 2:  // products and addends near 2^-126, subnormal operands among them
      fill(58, 12);
      if (words() % 4 == 0) out.a[words() % 2] = bf16(words, 0, 3);
      if (words() % 4 == 0) out.b[words() % 2] = bf16(words, 116, 20);
      out.c = fp32(words, 0, 4);
      break;
    case 3: {  // one product far below the addend: ties, and what just misses them
      fill(120, 14);
      const int below = static_cast<int>(words() % 2);
      out.a[below] = static_cast<std::uint16_t>((out.a[below] & 0xff80) | 0x40 * (words() % 2));
      out.b[below] = bf16(words, 96, 14);
      out.c = fp32(words, 124, 7) & (words() % 2 == 0 ? 0xffffffff : 0xffff8000);
      break;
    }
    case 4:  // the largest numbers
      fill(186, 8);
      out.c = fp32(words, 250, 5);
      break;
    case 5: {  // just below the smallest normal number, in magnitude
      fill(48, 6);
      const std::uint32_t other = words() % 2;
      out.a[other] = static_cast<std::uint16_t>(words() & 0x8000);
      const std::uint16_t product_sign = (out.a[1 - other] ^ out.b[1 - other]) & 0x8000;
      out.c = 0x00800000 | static_cast<std::uint32_t>(~product_sign & 0x8000) << 16;
      break;
    }
    default:  // zeros, infinities and NaN among numbers
      fill(124, 6);
      out.c = fp32(words, 124, 6);
      for (std::uint32_t n = 1 + words() % 3; n > 0; --n) {
        const std::uint32_t place = words() % 5;
        const std::uint16_t code = special(words);
        if (place == 4) {
          out.c = static_cast<std::uint32_t>(code) << 16 | (words() % 2 == 0 ? 0 : words() % 0x80);
        } else {
          (place < 2 ? out.a : out.b)[place % 2] = code;
        }
      }
      break;
  }
  return out;
}

#if defined(__x86_64__)

bool cpu_has_vdpbf16ps() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && ((a >> 5) & 1) != 0;
  return bf16 && __builtin_cpu_supports("avx512vl");
}

__attribute__((target("avx512f,avx512vl,avx512bf16"))) void cpu_vdpbf16ps(
    std::span<const Bf16Pair> cases, std::span<std::uint32_t> results) {
  constexpr std::size_t lanes = 4;
  for (std::size_t i = 0; i < cases.size(); i += lanes) {
    const std::size_t count = std::min(lanes, cases.size() - i);
    std::array<std::uint32_t, lanes> c{}, a{}, b{};
    for (std::size_t j = 0; j < count; ++j) {
      c[j] = cases[i + j].c;
      a[j] = cases[i + j].a[0] | static_cast<std::uint32_t>(cases[i + j].a[1]) << 16;
      b[j] = cases[i + j].b[0] | static_cast<std::uint32_t>(cases[i + j].b[1]) << 16;
    }
    __m128i va, vb;
    __m128 vc;
    std::memcpy(&va, a.data(), sizeof va);
    std::memcpy(&vb, b.data(), sizeof vb);
    std::memcpy(&vc, c.data(), sizeof vc);
    const __m128 vd =
        _mm_dpbf16_ps(vc, reinterpret_cast<__m128bh>(va), reinterpret_cast<__m128bh>(vb));
    std::array<std::uint32_t, lanes> d{};
    std::memcpy(d.data(), &vd, sizeof vd);
    std::copy_n(d.begin(), count, results.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

#else

bool cpu_has_vdpbf16ps() { return false; }
void cpu_vdpbf16ps(std::span<const Bf16Pair> /*cases*/, std::span<std::uint32_t> /*results*/) {}

#endif

std::uint32_t unit_result(const MatrixUnit& unit, const Bf16Pair& each) {
  const std::array<Bits, 2> a{each.a[0], each.a[1]};
  const std::array<Bits, 2> b{each.b[0], each.b[1]};
  return static_cast<std::uint32_t>(unit_dot(unit, {.a = a, .b = b, .c = each.c}));
}

std::vector<WrongRule> wrong_rules() {
  const MatrixUnit right = *find_matrix_unit("x86.vdpbf16ps.bf16.f32");
  std::vector<WrongRule> rules;
  const auto add = [&](std::string name, auto change) {
    WrongRule rule{std::move(name), right};
    change(rule.unit);
    rules.push_back(std::move(rule));
  };
  using softfloat::Rounding;
  using softfloat::Subnormals;
  add("the even product first", [](MatrixUnit& u) { u.order = OperandOrder::in_turn; });
  add("one rounding of the exact sum", [](MatrixUnit& u) { u.operation = UnitOperation::e_fdpa; });
  add("products rounded, then added in pairs",
      [](MatrixUnit& u) { u.operation = UnitOperation::ftz_add_mul; });
  add("subnormal numbers kept", [](MatrixUnit& u) { u.mode.subnormals = Subnormals::keep; });
  add("subnormal operands kept",
      [](MatrixUnit& u) { u.mode.subnormals = Subnormals::flush_results; });
  add("subnormal results kept",
      [](MatrixUnit& u) { u.mode.subnormals = Subnormals::flush_inputs; });
  add("tiny before rounding",
      [](MatrixUnit& u) { u.mode.tininess = softfloat::Tininess::before_rounding; });
  add("ties away from zero", [](MatrixUnit& u) { u.mode.rounding = Rounding::ties_to_away; });
  add("toward zero", [](MatrixUnit& u) { u.mode.rounding = Rounding::toward_zero; });
  add("two accumulators, c last", [](MatrixUnit& u) {
    u.accumulators = 2;
    u.addend = Addend::last;
  });
  add("one NaN for all", [](MatrixUnit& u) { u.nan_rule = NanRule::fixed; });
  add("a positive NaN of its own", [](MatrixUnit& u) { u.nan_code = 0x7fc00000; });
  return rules;
}

std::vector<std::size_t> sharpest(std::span<const std::uint32_t> results, std::size_t count) {
  const std::vector<WrongRule> rules = wrong_rules();
  std::vector<std::uint32_t> refuted(results.size());  // a bit for each rule
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Bf16Pair each = bf16_case(i);
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (unit_result(rules[r].unit, each) != results[i]) refuted[i] |= std::uint32_t{1} << r;
    }
  }
  std::vector<std::size_t> by_sharpness(results.size());
  for (std::size_t i = 0; i < by_sharpness.size(); ++i) by_sharpness[i] = i;
  std::sort(by_sharpness.begin(), by_sharpness.end(), [&](std::size_t x, std::size_t y) {
    const int of_x = std::popcount(refuted[x]);
    const int of_y = std::popcount(refuted[y]);
    return of_x != of_y ? of_x > of_y : x < y;
  });
  std::vector<bool> taken(results.size());
  std::vector<std::size_t> chosen;
  const auto take = [&](std::uint32_t wanted, std::size_t most) {
    for (const std::size_t i : by_sharpness) {
      if (most == 0 || chosen.size() == count) return;
      if (taken[i] || (refuted[i] & wanted) == 0) continue;
      taken[i] = true;
      chosen.push_back(i);
      --most;
    }
  };
  const std::size_t share = count / (2 * rules.size());
  for (std::size_t r = 0; r < rules.size(); ++r) take(std::uint32_t{1} << r, share);
  take(~std::uint32_t{0}, count);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string digest_of(std::span<const std::uint32_t> results) {
  std::vector<std::byte> bytes;
  bytes.reserve(4 * results.size());
  for (const std::uint32_t word : results) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::byte>(word >> shift & 0xff));
    }
  }
  return sha256(bytes);
}

}  // namespace kvsim
