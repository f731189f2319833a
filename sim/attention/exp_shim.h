// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "sim/exp.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

/// Stands in until the exp models are there.
namespace kvsim::attention {

class ExpFunction {
 public:
  explicit ExpFunction(bool gpu) : gpu_(gpu) {}
  [[nodiscard]] float exp(float x) const {
    if (gpu_) return exp2(x * 0x1.715476p+0F);
    return softfloat::to_float(
        softfloat::binary32,
        exp_correctly_rounded(softfloat::binary32, softfloat::from_float(x)).bits);
  }
  [[nodiscard]] float exp2(float x) const {
    if (x == -INFINITY || x < -126) return 0;
    if (!(x < 128)) return x;
    return static_cast<float>(exp2_reference({x, 0}).high);
  }
  void exp(std::span<const float> in, std::span<float> out) const {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = exp(in[i]);
  }
  void exp2(std::span<const float> in, std::span<float> out) const {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = exp2(in[i]);
  }
  [[nodiscard]] bool bounded() const { return gpu_; }

 private:
  bool gpu_;
};

inline float log_f32(float x) { return static_cast<float>(std::log(static_cast<double>(x))); }
inline float log2_f32(float x) { return static_cast<float>(std::log2(static_cast<double>(x))); }
inline float tanh_f32(float x) { return static_cast<float>(std::tanh(static_cast<double>(x))); }

}  // namespace kvsim::attention
