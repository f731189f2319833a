// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace kvsim {

/// Calls work(i) for 0 ≤ i < count on up to `threads` threads, the caller's included. Calls must be
/// independent and write each to its own place, so that the number of threads changes only time.
/// What a call throws, which is that memory ran out, ends the others and is thrown from here.
template <class Work>
void parallel_for(std::int64_t count, int threads, const Work& work) {
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // written by the call that sets `failed` first
  const auto run = [&] {
    try {
      for (std::int64_t i = next++; i < count && !failed; i = next++) work(i);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  const std::int64_t helpers = std::min<std::int64_t>(threads, count) - 1;
  std::vector<std::thread> pool;
  for (std::int64_t i = 0; i < helpers; ++i) {
    try {
      pool.emplace_back(run);
    } catch (const std::exception&) {
      break;  // the system has no more threads, or no memory: those that run do the rest
    }
  }
  run();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace kvsim
