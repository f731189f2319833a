// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>

#include "sim/inputs.h"
#include "sim/philox.h"

namespace kvsim::fuzz {

/// Random numbers one after another from one stream of Philox: equal (seed, stream, position) give
/// equal numbers, whatever happened elsewhere.
class Random {
 public:
  struct Address {
    std::uint64_t seed = 0;
    std::uint64_t stream = 0;
    std::uint64_t position = 0;
  };
  explicit Random(const Address& address) : address_(address) {}

  /// How many were drawn: what a later Random starts from.
  [[nodiscard]] std::uint64_t position() const { return address_.position; }

  [[nodiscard]] std::uint64_t bits() {
    return philox_bits(address_.seed, address_.stream, address_.position++);
  }
  /// Even among 0 … count − 1, within a bias of count ÷ 2^32; 1 ≤ count < 2^31.
  [[nodiscard]] std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(((bits() >> 32) * static_cast<std::uint64_t>(count)) >> 32);
  }
  /// One of lowest … highest.
  [[nodiscard]] std::int64_t between(std::int64_t lowest, std::int64_t highest) {
    return lowest + below(highest - lowest + 1);
  }
  /// In (0, 1).
  [[nodiscard]] double unit() {
    return uniform(address_.seed, address_.stream, address_.position++);
  }
  /// Standard normal numbers, four from one address: interpolated between 4096 quantiles, so that
  /// none is beyond 3.8.
  void gaussians(std::span<float> out);
  /// True once in `count` times.
  [[nodiscard]] bool once_in(std::int64_t count) { return below(count) == 0; }

 private:
  Address address_;
};

}  // namespace kvsim::fuzz
