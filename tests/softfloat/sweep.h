// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// What the sweeps share: the operations under test by name, lists of modes, deterministic random
/// words, work split over threads, and the check of one case in many modes.

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "softfloat/arithmetic.h"
#include "tests/softfloat/failure_log.h"
#include "tests/softfloat/oracle.h"
#include "tests/softfloat/oracle_round.h"

namespace kvsim::oracle {

/// The name of an operation in `kvsim eval`.
constexpr std::string_view name(Op op) {
  constexpr std::string_view names[] = {"add", "sub",  "mul",     "div",
                                        "fma", "sqrt", "convert", "round_to_integral"};
  return names[static_cast<int>(op)];
}

/// softfloat's answer: what is under test.
template <Op op>
constexpr Rounded tested(const Format& to, const Format& from, Bits a, Bits b, Bits c,
                         const Mode& mode) {
  if constexpr (op == Op::add) return softfloat::add(to, a, b, mode);
  if constexpr (op == Op::sub) return softfloat::sub(to, a, b, mode);
  if constexpr (op == Op::mul) return softfloat::mul(to, a, b, mode);
  if constexpr (op == Op::div) return softfloat::div(to, a, b, mode);
  if constexpr (op == Op::fma) return softfloat::fma(to, a, b, c, mode);
  if constexpr (op == Op::sqrt) return softfloat::sqrt(to, a, mode);
  if constexpr (op == Op::convert) return softfloat::convert(to, from, a, mode);
  if constexpr (op == Op::round_to_integral) return softfloat::round_to_integral(to, a, mode);
}

/// A bijective mix of 64 bits (SplitMix64's finaliser): random words addressed by a counter.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// All seven roundings (stochastic with three random words) with both kinds of tininess: the modes
/// of IEEE 754 and two more.
inline std::vector<Mode> rounding_modes() {
  std::vector<Mode> modes;
  for (const auto tininess : {Tininess::after_rounding, Tininess::before_rounding}) {
    for (int r = 0; r <= static_cast<int>(Rounding::stochastic); ++r) {
      Mode mode;
      mode.rounding = static_cast<Rounding>(r);
      mode.tininess = tininess;
      if (mode.rounding == Rounding::stochastic) {
        for (const std::uint32_t random : {0U, 0x80000000U, 0xffffffffU}) {
          mode.random = random;
          modes.push_back(mode);
        }
      } else {
        modes.push_back(mode);
      }
    }
  }
  return modes;
}

/// Every combination of rounding, tininess, overflow policy and subnormal policy.
inline std::vector<Mode> all_modes() {
  std::vector<Mode> modes;
  for (int overflow = 0; overflow < 4; ++overflow) {
    for (int subnormals = 0; subnormals < 4; ++subnormals) {
      for (Mode mode : rounding_modes()) {
        mode.overflow = static_cast<Overflow>(overflow);
        mode.subnormals = static_cast<Subnormals>(subnormals);
        modes.push_back(mode);
      }
    }
  }
  return modes;
}

/// Calls body(i) for every i below `count`, on every core; body must not depend on the order.
template <class Body>
void parallel_for(std::uint64_t count, Body body) {
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (std::uint64_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> threads;
  const unsigned workers = std::max(std::thread::hardware_concurrency(), 1U);
  for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

/// An oracle of this thread's own.
inline Oracle& thread_oracle() {
  thread_local Oracle oracle;
  return oracle;
}

/// A random word for stochastic rounding: any, or one of the two between which `x` changes its
/// result, so that the threshold itself is checked.
inline std::uint32_t stochastic_word(Op op, const Exact& x, const Format& f, std::uint64_t word) {
  if (word % 2 == 0 || x.kind != Kind::finite) return static_cast<std::uint32_t>(word >> 32);
  const int top = x.exponent + bit_length(x.significand) - 1;
  const int quantum =
      op == Op::round_to_integral ? 0 : std::max(top, limits(f).emin) - f.precision + 1;
  if (quantum < x.exponent) return 0;
  const Cut discarded = cut(x, quantum, Rounding::toward_zero, 0);
  return static_cast<std::uint32_t>(std::uint64_t{0} - discarded.top32 - (word / 2) % 2);
}

/// Checks one case in each mode; `exact` and `flushed` are its results with subnormal operands kept
/// and read as zero. A stochastic mode with random word 0x80000000 gets a word of this case's own.
template <Op op>
inline void check_modes(std::span<const Mode> modes, const Format& to, const Format& from, Bits a,
                        Bits b, Bits c, const Exact& exact, const Exact& flushed, FailureLog& log) {
  for (Mode mode : modes) {
    const Exact& x = flushes_inputs(mode) ? flushed : exact;
    if (mode.random == 0x80000000U) {
      mode.random = stochastic_word(op, x, to, mix(mix(mix(a) ^ b) ^ c));
    }
    const Rounded want =
        op == Op::round_to_integral ? round_to_integral(x, to, mode) : round(x, to, mode);
    const Rounded got = tested<op>(to, from, a, b, c, mode);
    if (!(got == want)) [[unlikely]] {
      log.record({name(op), from, to, {a, b, c}, operand_count(op), mode, got, want});
    }
  }
}

/// Computes one case with MPFR, once (twice where a mode may flush a subnormal operand), and checks
/// it in each mode.
template <Op op>
inline void check_case(std::span<const Mode> modes, const Format& to, const Format& from, Bits a,
                       Bits b, Bits c, FailureLog& log) {
  const int count = operand_count(op);
  const bool differs = decode(from, a).subnormal || (count > 1 && decode(from, b).subnormal) ||
                       (count > 2 && decode(from, c).subnormal);
  const auto result = [&](bool flush) {
    if constexpr (op == Op::round_to_integral) return exact_value(decode(from, a, flush));
    return thread_oracle().compute(op, to, from, a, b, c, flush);
  };
  const Exact exact = result(false);
  const bool flushes = modes.size() > 2 * 9;  // only all_modes() flushes
  check_modes<op>(modes, to, from, a, b, c, exact, differs && flushes ? result(true) : exact, log);
}

}  // namespace kvsim::oracle
