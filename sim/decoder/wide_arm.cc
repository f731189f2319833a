// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/decoder/decoder_arm.h"
#include "sim/decoder/wide_attention.h"
#include "sim/elementary.h"
#include "sim/engine/binary64_matrix.h"
#include "sim/exp.h"
#include "sim/parallel.h"
#include "sim/predict/exact_attention.h"

namespace kvsim::decoder {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double exp_double(double x) { return exp_reference(x).high; }

double activate(GateActivation activation, double x) {
  constexpr double sqrt_half = 0.70710678118654752440;
  constexpr double sqrt_two_over_pi = 0.79788456080286535588;
  switch (activation) {
    case GateActivation::silu:
      return x / (1 + exp_double(-x));
    case GateActivation::gelu:
      // The error function is known to binary32 here.
      return x * 0.5 * (1 + static_cast<double>(erf_f32(static_cast<float>(x * sqrt_half))));
    case GateActivation::gelu_tanh:
      break;
  }
  const double inner = sqrt_two_over_pi * (x + 0.044715 * x * x * x);
  return x * 0.5 * (1 + tanh_reference(inner).high);
}

/// Every operator in binary64; nothing is rounded to storage. The cosines and sines of RoPE are
/// data: binary32, correctly rounded.
class WideArm : public DecoderArm {
 public:
  WideArm(const ArmSetup& setup, const RopeKernel& table) : setup_(setup), table_kernel_(table) {
    for (std::size_t i = 0; i < buffer_count; ++i) {
      buffers_[i].assign(at(setup_.tokens() * setup_.width(static_cast<Buffer>(i))), 0);
    }
  }

  void start(std::span<const float> hidden) override {
    std::ranges::copy(hidden, all(Buffer::hidden).begin());
  }

  Result<bool> norm(const NormStep& step) override {
    const std::vector<double>& in = all(step.in);
    std::vector<double>& out = all(step.out);
    const bool plus_one = setup_.shape.norm_weight_plus_one;
    const auto rows = static_cast<std::int64_t>(in.size()) / step.width;
    for (std::int64_t i = 0; i < rows; ++i) {
      const double* x = in.data() + i * step.width;
      double squares = 0;
      for (std::int64_t j = 0; j < step.width; ++j) squares += x[j] * x[j];
      const double mean = squares / static_cast<double>(step.width);
      const double scale = 1 / std::sqrt(mean + setup_.shape.norm_epsilon);
      for (std::int64_t j = 0; j < step.width; ++j) {
        const double weight = static_cast<double>(step.weight[j]) + (plus_one ? 1 : 0);
        out[at(i * step.width + j)] = x[j] * scale * weight;
      }
    }
    return true;
  }

  Result<bool> linear(const LinearStep& step) override {
    std::vector<double>& out = all(step.out);
    multiply_binary64({.rows = setup_.tokens(),
                       .terms = step.terms,
                       .columns = step.outputs,
                       .x = all(step.in).data(),
                       .w = step.weights,
                       .w_stride = step.outputs},
                      out.data(), setup_.engine);
    if (step.bias != nullptr) {
      for (std::int64_t i = 0; i < setup_.tokens(); ++i) {
        for (std::int64_t j = 0; j < step.outputs; ++j) {
          out[at(i * step.outputs + j)] += static_cast<double>(step.bias[j]);
        }
      }
    }
    return true;
  }

  Result<bool> rotate(const LayerPosition& layer) override {
    const Result<RopeTable> table =
        make_rope_table(table_kernel_, {.storage = setup_.storage,
                                        .rotated = setup_.shape.head_dim,
                                        .base = layer.rope_base,
                                        .positions = setup_.tokens(),
                                        .custom_frequencies = layer.custom_frequencies});
    if (!table) return table.error();
    const std::int64_t half = setup_.shape.head_dim / 2;
    for (const Buffer buffer : {Buffer::query, Buffer::key}) {
      std::vector<double>& x = all(buffer);
      const std::int64_t heads = setup_.width(buffer) / setup_.shape.head_dim;
      for (std::int64_t row = 0; row < setup_.tokens() * heads; ++row) {
        double* head = x.data() + row * setup_.shape.head_dim;
        for (std::int64_t i = 0; i < half; ++i) {
          const double cosine = table->cosine[at(row / heads * half + i)];
          const double sine = table->sine[at(row / heads * half + i)];
          const double low = head[i];
          const double high = head[i + half];
          head[i] = low * cosine - high * sine;
          head[i + half] = high * cosine + low * sine;
        }
      }
    }
    return true;
  }

  Result<bool> attend(const LayerPosition& layer) override {
    attend_binary64(setup_.shape, layer, setup_.tokens(),
                    {all(Buffer::query), all(Buffer::key), all(Buffer::value)},
                    all(Buffer::attended), setup_.engine.threads);
    return true;
  }

  Result<bool> multiply_gate() override {
    std::vector<double>& gate = all(Buffer::gate);
    const std::int64_t width = setup_.shape.ffn;
    parallel_for(setup_.tokens(), setup_.engine.threads, [&](std::int64_t i) {
      for (std::int64_t j = i * width; j < (i + 1) * width; ++j) {
        gate[at(j)] = activate(setup_.shape.activation, gate[at(j)]);
      }
    });
    const std::vector<double>& up = all(Buffer::up);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i];
    return true;
  }

  Result<bool> add_branch() override {
    std::vector<double>& hidden = all(Buffer::hidden);
    const std::vector<double>& branch = all(Buffer::branch);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += branch[i];
    return true;
  }

  [[nodiscard]] std::vector<double> read(Buffer buffer, std::int64_t first_token,
                                         std::int64_t count) const override {
    const std::int64_t width = setup_.width(buffer);
    const double* from = buffers_[static_cast<std::size_t>(buffer)].data() + first_token * width;
    return {from, from + count * width};
  }

 private:
  std::vector<double>& all(Buffer buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }

  ArmSetup setup_;
  const RopeKernel& table_kernel_;
  std::array<std::vector<double>, buffer_count> buffers_;
};

}  // namespace

Result<std::unique_ptr<DecoderArm>> make_wide_arm(const ArmSetup& setup) {
  const RopeKernel* table = find_rope_kernel("control-rope");
  if (table == nullptr) {
    return Error{ErrorKind::usage, "the rope kernel of the tables; accepted: a name of its table"};
  }
  return std::unique_ptr<DecoderArm>(std::make_unique<WideArm>(setup, *table));
}

Result<std::unique_ptr<DecoderArm>> make_arm(const ArmSetup& setup) {
  return setup.dispatch->arithmetic == DispatchArithmetic::binary64 ? make_wide_arm(setup)
                                                                    : make_kernel_arm(setup);
}

std::int64_t ArmSetup::width(Buffer buffer) const {
  switch (buffer) {
    case Buffer::query:
    case Buffer::attended:
      return shape.query_heads * shape.head_dim;
    case Buffer::key:
    case Buffer::value:
      return shape.kv_heads * shape.head_dim;
    case Buffer::gate:
    case Buffer::up:
      return shape.ffn;
    case Buffer::hidden:
    case Buffer::normed:
    case Buffer::branch:
      break;
  }
  return shape.hidden;
}

}  // namespace kvsim::decoder
