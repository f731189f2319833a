// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace kvsim {

/// Calls work(i) for 0 ≤ i < count on up to `threads` threads, the caller's included. Calls must be
/// independent and write each to its own place, so that the number of threads changes only time.
template <class Work>
void parallel_for(std::int64_t count, int threads, const Work& work) {
  std::atomic<std::int64_t> next{0};
  const auto run = [&] {
    for (std::int64_t i = next++; i < count; i = next++) work(i);
  };
  const std::int64_t helpers = std::min<std::int64_t>(threads, count) - 1;
  std::vector<std::thread> pool;
  for (std::int64_t i = 0; i < helpers; ++i) {
    try {
      pool.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // the system has no more threads: those that run do the rest
    }
  }
  run();
  for (std::thread& thread : pool) thread.join();
}

}  // namespace kvsim
