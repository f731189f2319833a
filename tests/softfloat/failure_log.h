// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "tests/softfloat/oracle.h"

namespace kvsim::oracle {

/// One comparison that failed.
struct Failure {
  std::string_view operation;  ///< as `kvsim eval` names it
  Format from, to;             ///< of the operands; of the result
  std::array<Bits, 3> operands{};
  int count = 0;  ///< operands in use
  Mode mode;
  Rounded got, want;
};

/// Collects failures from any number of threads and keeps the one with the smallest operands
/// (magnitudes first, so that the case is as simple as can be).
class FailureLog {
 public:
  /// Counts a failure and keeps it if it is the smallest so far.
  void record(const Failure& failure);

  [[nodiscard]] std::uint64_t count() const { return count_; }

  /// How many failed and the smallest of them: bits, hex-float and a line for `kvsim eval`.
  /// Empty when nothing failed.
  [[nodiscard]] std::string report() const;

 private:
  std::mutex mutex_;
  std::uint64_t count_ = 0;
  Failure smallest_;
};

/// A code as "0x3c00 (0x1p+0)".
std::string describe(const Format& format, Bits bits);

}  // namespace kvsim::oracle
