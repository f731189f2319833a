// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "softfloat/result.h"

/// What every part of the decoder needs to stand between libtorch and the program.
namespace kvsim::gpu::aten {

/// The numbers of a tensor, exact.
inline std::vector<double> doubles_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kCPU, at::kDouble).contiguous();
  const double* const begin = numbers.const_data_ptr<double>();
  return {begin, begin + numbers.numel()};
}

/// The numbers as a tensor of doubles of its own.
inline at::Tensor tensor_of(std::span<const double> numbers) {
  at::Tensor made = at::empty({std::ssize(numbers)}, at::kDouble);
  std::ranges::copy(numbers, made.mutable_data_ptr<double>());
  return made;
}

/// What libtorch threw, in one line.
inline Error error_of(const std::exception& thrown) {
  std::string text = thrown.what();
  if (const auto* known = dynamic_cast<const c10::Error*>(&thrown)) {
    text = known->what_without_backtrace();
  }
  text = text.substr(0, text.find('\n'));
  return {ErrorKind::file, "libtorch: " + text.substr(0, 400)};
}

/// What `compute` gives, or what it throws as an error (file). No gradients are kept.
template <class Value, class Compute>
Result<Value> guarded(const Compute& compute) {
  try {
    const c10::InferenceMode no_gradients;
    return Result<Value>(compute());
  } catch (const std::exception& thrown) {
    return error_of(thrown);
  }
}

/// Only where another number holds: setting it empties libtorch's caches of compiled kernels.
inline void use_threads(std::int64_t threads) {
  if (at::get_num_threads() == threads) return;
  at::set_num_threads(static_cast<int>(threads));
}

}  // namespace kvsim::gpu::aten
