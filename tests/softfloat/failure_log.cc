// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/softfloat/failure_log.h"

#include <fmt/format.h>

#include <cmath>

#include "softfloat/formats.h"

namespace kvsim::oracle {
namespace {

std::string bits_text(const Format& format, Bits bits) {
  return fmt::format("{:#0{}x}", bits, (format.width() + 3) / 4 + 2);
}

std::string flags_text(const Flags& flags) {
  std::string text;
  const auto append = [&](bool raised, std::string_view name) {
    if (raised) text += fmt::format("{}{}", text.empty() ? "" : " ", name);
  };
  append(flags.invalid, "invalid");
  append(flags.division_by_zero, "division_by_zero");
  append(flags.overflow, "overflow");
  append(flags.underflow, "underflow");
  append(flags.inexact, "inexact");
  return text.empty() ? "no flags" : text;
}

std::string mode_options(const Mode& mode) {
  constexpr std::array roundings{"ties_to_even",    "ties_to_away",    "toward_zero",
                                 "toward_positive", "toward_negative", "to_odd",
                                 "stochastic"};
  constexpr std::array overflows{"automatic", "infinity", "saturate", "nan"};
  constexpr std::array subnormals{"keep", "flush_results", "flush_inputs", "flush_both"};
  std::string text =
      fmt::format(" --rounding {}", roundings.at(static_cast<std::size_t>(mode.rounding)));
  if (mode.rounding == Rounding::stochastic) text += fmt::format(" --random {:#x}", mode.random);
  if (mode.overflow != Overflow::automatic) {
    text += fmt::format(" --overflow {}", overflows.at(static_cast<std::size_t>(mode.overflow)));
  }
  if (mode.subnormals != Subnormals::keep) {
    text +=
        fmt::format(" --subnormals {}", subnormals.at(static_cast<std::size_t>(mode.subnormals)));
  }
  if (mode.tininess == Tininess::before_rounding) text += " --tininess before_rounding";
  return text;
}

auto size_of(const Failure& f) {
  const Bits mask = f.from.magnitude_mask();
  return std::tuple(f.operands[0] & mask, f.operands[1] & mask, f.operands[2] & mask, f.operands,
                    f.mode.subnormals, f.mode.overflow, f.mode.tininess, f.mode.rounding);
}

}  // namespace

void FailureLog::record(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (count_++ == 0 || size_of(failure) < size_of(smallest_)) smallest_ = failure;
}

std::string describe(const Format& format, Bits bits) {
  const Operand o = decode(format, bits);
  std::string number;
  switch (o.kind) {
    case Kind::zero:
      number = o.negative ? "-0x0p+0" : "0x0p+0";
      break;
    case Kind::infinite:
      number = o.negative ? "-inf" : "inf";
      break;
    case Kind::nan:
      number = "nan";
      break;
    case Kind::finite: {
      const double value = std::ldexp(static_cast<double>(o.significand), o.exponent);
      number = fmt::format("{:a}", o.negative ? -value : value);
      break;
    }
  }
  return fmt::format("{} ({})", bits_text(format, bits), number);
}

std::string FailureLog::report() const {
  if (count_ == 0) return {};
  const Failure& f = smallest_;
  std::string operands, codes;
  for (int i = 0; i < f.count; ++i) {
    const Bits bits = f.operands.at(static_cast<std::size_t>(i));
    operands += fmt::format(" {}", describe(f.from, bits));
    codes += fmt::format(" {}", bits_text(f.from, bits));
  }
  const auto from = softfloat::format_name(f.from);
  const auto to = softfloat::format_name(f.to);
  return fmt::format(
      "{} failures; the smallest:\n  {} {} -> {}:{}\n  got  {}, {}\n  want {}, {}\n"
      "  kvsim eval {} --format {}{}{}{}\n",
      count_, f.operation, from, to, operands, describe(f.to, f.got.bits), flags_text(f.got.flags),
      describe(f.to, f.want.bits), flags_text(f.want.flags), f.operation, from,
      f.from == f.to ? "" : fmt::format(" --to {}", to), mode_options(f.mode), codes);
}

}  // namespace kvsim::oracle
