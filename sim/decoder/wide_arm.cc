// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/decoder/decoder_arm.h"
#include "sim/decoder/heads.h"
#include "sim/elementary.h"
#include "sim/engine/binary64_matrix.h"
#include "sim/exp.h"
#include "sim/parallel.h"
#include "sim/predict/exact_attention.h"
#include "softfloat/formats.h"

namespace kvsim::decoder {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double exp_double(double x) { return exp_reference(x).high; }

/// x as a float from which one more rounding, to a format of at most 22 bits, gives what rounding x
/// itself gives: truncated, with the last bit set where anything was lost.
float round_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

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

/// Every operator in binary64; an exact arm rounds each result once to storage, the other nothing.
/// Each token is computed by itself, so that groups make no difference.
class WideArm : public DecoderArm {
 public:
  WideArm(const ArmSetup& setup, const RopeKernel& table)
      : setup_(setup),
        table_kernel_(table),
        rounds_(setup.dispatch->arithmetic == DispatchArithmetic::exact) {
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
      const double scale = 1 / std::sqrt(mean + static_cast<double>(setup_.shape.norm_epsilon));
      for (std::int64_t j = 0; j < step.width; ++j) {
        const double weight = static_cast<double>(step.weight[j]) + (plus_one ? 1 : 0);
        out[at(i * step.width + j)] = x[j] * scale * weight;
      }
    }
    return store(out);
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
    return store(out);
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
      const Result<bool> stored = store(x);
      if (!stored) return stored;
    }
    return true;
  }

  Result<bool> attend(const LayerPosition& layer) override {
    parallel_for(setup_.shape.query_heads, setup_.engine.threads, [&](std::int64_t head) {
      for (std::int64_t token = 0; token < setup_.tokens(); ++token) {
        attend_row(layer, head, token);
      }
    });
    return store(all(Buffer::attended));
  }

  Result<bool> multiply_gate() override {
    std::vector<double>& gate = all(Buffer::gate);
    const std::int64_t width = setup_.shape.ffn;
    parallel_for(setup_.tokens(), setup_.engine.threads, [&](std::int64_t i) {
      for (std::int64_t j = i * width; j < (i + 1) * width; ++j) {
        gate[at(j)] = activate(setup_.shape.activation, gate[at(j)]);
      }
    });
    const Result<bool> stored = store(gate);
    if (!stored) return stored;
    const std::vector<double>& up = all(Buffer::up);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i];
    return store(gate);
  }

  Result<bool> add_branch() override {
    std::vector<double>& hidden = all(Buffer::hidden);
    const std::vector<double>& branch = all(Buffer::branch);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += branch[i];
    return store(hidden);
  }

  [[nodiscard]] std::vector<double> read(Buffer buffer, std::int64_t first_token,
                                         std::int64_t count) const override {
    const std::int64_t width = setup_.width(buffer);
    const double* from = buffers_[static_cast<std::size_t>(buffer)].data() + first_token * width;
    return {from, from + count * width};
  }

 private:
  std::vector<double>& all(Buffer buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }

  void attend_row(const LayerPosition& layer, std::int64_t head, std::int64_t token) {
    const DecoderShape& shape = setup_.shape;
    const std::int64_t d = shape.head_dim;
    const std::int64_t kv_head = head / (shape.query_heads / shape.kv_heads);
    const auto kv_row = [&](Buffer buffer, std::int64_t key) {
      return all(buffer).data() + (key * shape.kv_heads + kv_head) * d;
    };
    const double* q = all(Buffer::query).data() + (token * shape.query_heads + head) * d;
    const double scale = shape.attention_scale > 0 ? static_cast<double>(shape.attention_scale)
                                                   : 1 / std::sqrt(static_cast<double>(d));
    const std::int64_t first =
        layer.window > 0 ? std::max<std::int64_t>(0, token - layer.window + 1) : 0;
    std::vector<double> p;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t key = first; key <= token; ++key) {
      const double* k = kv_row(Buffer::key, key);
      double score = 0;
      for (std::int64_t i = 0; i < d; ++i) score += q[i] * k[i];
      score *= scale;
      if (shape.attention_soft_cap > 0) {
        const auto cap = static_cast<double>(shape.attention_soft_cap);
        score = cap * tanh_reference(score / cap).high;
      }
      p.push_back(score);
      largest = std::max(largest, score);
    }
    double sum = 0;
    for (double& x : p) sum += x = exp_double(x - largest);
    double* out = all(Buffer::attended).data() + (token * shape.query_heads + head) * d;
    std::fill_n(out, d, 0.0);
    for (std::size_t j = 0; j < p.size(); ++j) {
      const double* v = kv_row(Buffer::value, first + static_cast<std::int64_t>(j));
      for (std::int64_t i = 0; i < d; ++i) out[i] += p[j] * v[i];
    }
    for (std::int64_t i = 0; i < d; ++i) out[i] /= sum;
  }

  /// An operator's result goes to memory.
  Result<bool> store(std::vector<double>& x) {
    if (!rounds_) return true;
    const bool is_float = setup_.storage == softfloat::binary32;
    std::vector<float> narrow(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      narrow[i] = is_float ? static_cast<float>(x[i]) : round_to_odd(x[i]);
    }
    Result<bool> rounded = round_values(setup_.storage, narrow, narrow, setup_.engine.level);
    std::ranges::copy(narrow, x.begin());
    return rounded;
  }

  ArmSetup setup_;
  const RopeKernel& table_kernel_;
  bool rounds_;
  std::array<std::vector<double>, buffer_count> buffers_;
};

}  // namespace

Result<std::unique_ptr<DecoderArm>> make_wide_arm(const ArmSetup& setup) {
  const bool exact = setup.dispatch->arithmetic == DispatchArithmetic::exact;
  const RopeKernel* table =
      find_rope_kernel(exact && !setup.table_rope.empty() ? setup.table_rope : "plain-rope");
  if (table == nullptr) {
    return Error{ErrorKind::usage, "the rope kernel of the tables; accepted: a name of its table"};
  }
  return std::unique_ptr<DecoderArm>(std::make_unique<WideArm>(setup, *table));
}

Result<std::unique_ptr<DecoderArm>> make_arm(const ArmSetup& setup) {
  return setup.dispatch->arithmetic == DispatchArithmetic::kernels ? make_kernel_arm(setup)
                                                                   : make_wide_arm(setup);
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
