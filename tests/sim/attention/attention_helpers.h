// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/attention/run.h"
#include "sim/philox.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

/// Inputs for the tests of attention kernels.
namespace kvsim::test {

/// The code of x, rounded to a format, on softfloat.
inline softfloat::Bits code_of(const softfloat::Format& format, float x) {
  return softfloat::convert(format, softfloat::binary32, softfloat::from_float(x)).bits;
}
inline float rounded(const softfloat::Format& format, float x) {
  return softfloat::to_float(format, code_of(format, x));
}

/// The tensors of one layer and the problem that points at them.
struct Layer {
  std::vector<float> q, k, v;
  AttentionProblem problem;

  Layer(const AttentionShape& shape, const softfloat::Format& storage, std::uint64_t seed)
      : q(fill(shape.query_heads * shape.query_len * shape.head_dim, storage, seed * 3 + 1)),
        k(fill(shape.kv_heads * shape.kv_len * shape.head_dim, storage, seed * 3 + 2)),
        v(fill(shape.kv_heads * shape.kv_len * shape.head_dim, storage, seed * 3 + 3)) {
    problem.shape = shape;
    problem.storage = storage;
    problem.q = q.data();
    problem.k = k.data();
    problem.v = v.data();
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// Numbers between −2 and 2 with a peak at 0: the sum of two uniform ones.
  static std::vector<float> fill(std::int64_t count, const softfloat::Format& storage,
                                 std::uint64_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::uint64_t state = seed;
    const auto uniform = [&state] {  // splitmix64
      state += 0x9e3779b97f4a7c15ULL;
      std::uint64_t z = state;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-23F - 1.0F;
    };
    for (float& x : values) x = rounded(storage, uniform() + uniform());
    return values;
  }
};

/// The kernel of that name; the test stops where there is none.
inline const AttentionKernel& kernel(std::string_view name) {
  const AttentionKernel* const found = find_attention_kernel(name);
  if (found == nullptr) ADD_FAILURE() << "no kernel " << name;
  return found == nullptr ? attention_kernels().front() : *found;
}

/// The result; the test fails with the message of an error. A kernel that does not take binary16
/// gets such numbers as binary32.
inline AttentionResult run(std::string_view name, const AttentionProblem& problem,
                           const AttentionOptions& options = {}) {
  AttentionProblem taken = problem;
  const std::span<const StorageSums> storages = kernel(name).storages;
  if (problem.storage == softfloat::binary16 &&
      std::ranges::find(storages, problem.storage, &StorageSums::storage) == storages.end()) {
    taken.storage = softfloat::binary32;
  }
  Result<AttentionResult> result = run_attention(kernel(name), taken, options);
  if (!result) {
    ADD_FAILURE() << name << ": " << result.error().message;
    return {};
  }
  return std::move(result.value());
}

/// The message of the error that must come.
inline std::string error_of(std::string_view name, const AttentionProblem& problem) {
  const Result<AttentionResult> result = run_attention(kernel(name), problem);
  return result ? "no error" : result.error().message;
}

/// Bits, so that −0, +0 and NaN are told apart.
inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float x : values) bits.push_back(std::bit_cast<std::uint32_t>(x));
  return bits;
}

}  // namespace kvsim::test
