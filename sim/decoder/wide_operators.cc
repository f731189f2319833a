// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/decoder/attention_plan.h"
#include "sim/decoder/row_operators.h"
#include "sim/decoder/wide_attention.h"
#include "sim/elementary_double.h"
#include "sim/engine/binary64_matrix.h"
#include "sim/exp.h"
#include "sim/parallel.h"
#include "sim/predict/exact_attention.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::decoder {
namespace {

double exp_double(double x) { return exp_reference(x).high; }

/// 1 + erf x, within 2^-47. erf_double() is ±1 from 4 on, where the float nearest to erf is; beyond
/// it erfc is e^(−x²) ÷ (|x| √π) · (1 − 1 ÷ 2x² + 1·3 ÷ (2x²)² − …), cut at its smallest term or
/// before, which is below 2^-22 of the sum.
double one_plus_erf(double x) {
  constexpr double sqrt_pi = 1.7724538509055160273;
  constexpr int terms = 15;
  if (std::fabs(x) < 4) return 1 + elementary::erf_double(x);
  double sum = 1;
  for (int n = terms; n >= 1; --n) sum = 1 - (2 * n - 1) / (2 * x * x) * sum;
  const double rest = exp_double(-x * x) / (std::fabs(x) * sqrt_pi) * sum;
  return x < 0 ? rest : 2 - rest;
}

double activate(GateActivation activation, double x) {
  constexpr double sqrt_half = 0.70710678118654752440;
  constexpr double sqrt_two_over_pi = 0.79788456080286535588;
  switch (activation) {
    case GateActivation::silu:
      return x / (1 + exp_double(-x));
    case GateActivation::gelu:
      return x * 0.5 * one_plus_erf(x * sqrt_half);
    case GateActivation::gelu_tanh:
      break;
  }
  const double inner = sqrt_two_over_pi * (x + 0.044715 * x * x * x);
  return x * 0.5 * (1 + tanh_reference(inner).high);
}

double in_binary16(double x) {
  auto number = static_cast<float>(x);
  static_cast<void>(round_values(softfloat::binary16, {&number, 1}, {&number, 1}));
  return static_cast<double>(number);
}

/// Every operator in binary64; nothing is rounded to another format.
class WideOperators : public RowOperators {
 public:
  explicit WideOperators(const OperatorSetup& setup) : setup_(setup) {}

  void begin(const PassRows& rows) override {
    rows_ = rows;
    for (std::size_t i = 0; i < buffer_count; ++i) {
      buffers_[i].assign(index(rows.count * width(static_cast<Buffer>(i))), 0);
    }
  }

  void start(std::span<const double> hidden) override {
    std::ranges::copy(hidden, all(Buffer::hidden).begin());
  }

  void replace_hidden(std::int64_t row, std::span<const double> values) override {
    std::ranges::copy(values, all(Buffer::hidden).begin() + row * width(Buffer::hidden));
  }

  Result<bool> norm(const NormStep& step) override {
    const std::vector<double>& in = all(step.in);
    std::vector<double>& out = all(step.out);
    const double one = setup_.shape.norm_weight_plus_one ? 1 : 0;
    const double epsilon =
        setup_.plant == Plant::wrong_epsilon ? wrong_epsilon : setup_.shape.norm_epsilon;
    const auto rows = static_cast<std::int64_t>(in.size()) / step.width;
    for (std::int64_t i = 0; i < rows; ++i) {
      const double* x = in.data() + i * step.width;
      double squares = 0;
      for (std::int64_t j = 0; j < step.width; ++j) squares += x[j] * x[j];
      const double mean = squares / static_cast<double>(step.width);
      const double scale = 1 / std::sqrt(mean + epsilon);
      for (std::int64_t j = 0; j < step.width; ++j) {
        out[index(i * step.width + j)] = x[j] * scale * (static_cast<double>(step.weight[j]) + one);
      }
    }
    return true;
  }

  Result<bool> linear(const LinearStep& step) override {
    multiply(step, 0, all(step.out));
    return true;
  }

  Result<bool> rotate(const LayerPosition& layer) override {
    const std::vector<std::int64_t> positions = planned_positions(setup_, rows_);
    const std::int64_t d = setup_.shape.head_dim;
    const bool interleaved = setup_.shape.rope_interleaved;
    const auto half = [&](double x) {
      return setup_.plant == Plant::rope_table_16_bit ? in_binary16(x) : x;
    };
    for (std::size_t row = 0; row < positions.size(); ++row) {
      for (std::int64_t i = 0; i < d / 2; ++i) {
        const double angle = half(half(static_cast<double>(positions[row])) *
                                  half(layer.exact_frequencies[index(i)]));
        const double cosine = half(elementary::cos_double(angle));
        const double sine = half(elementary::sin_double(angle));
        const std::int64_t first = interleaved ? 2 * i : i;
        const std::int64_t second = interleaved ? 2 * i + 1 : i + d / 2;
        for (const Buffer buffer : {Buffer::query, Buffer::key}) {
          double* x = all(buffer).data() + static_cast<std::int64_t>(row) * width(buffer);
          for (const double* end = x + width(buffer); x != end; x += d) {
            const double low = x[first];
            const double high = x[second];
            x[first] = low * cosine - high * sine;
            x[second] = high * cosine + low * sine;
          }
        }
      }
    }
    return true;
  }

  Result<bool> store(const CacheLayer& cache) override {
    cache.cache->write(cache.layer, KvPart::key, rows_.first,
                       std::span<const double>(all(Buffer::key)));
    cache.cache->write(cache.layer, KvPart::value, rows_.first,
                       std::span<const double>(all(Buffer::value)));
    return true;
  }

  Result<bool> attend(const LayerPosition& layer, const CacheLayer& cache) override {
    const AttentionPlan plan = plan_attention(setup_, rows_, layer);
    std::ranges::fill(all(Buffer::attended), 0.0);
    const std::vector<double> result = attend_binary64(
        setup_, rows_, plan, cache, read(Buffer::query, plan.first_query, plan.queries));
    std::ranges::copy(result,
                      all(Buffer::attended).begin() + plan.first_query * width(Buffer::attended));
    return true;
  }

  Result<bool> multiply_gate() override {
    std::vector<double>& gate = all(Buffer::gate);
    const std::int64_t ffn = setup_.shape.ffn;
    parallel_for(rows_.count, setup_.engine.threads, [&](std::int64_t i) {
      for (std::int64_t j = i * ffn; j < (i + 1) * ffn; ++j) {
        gate[index(j)] = activate(setup_.shape.activation, gate[index(j)]);
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

  Result<std::vector<double>> head(const LinearStep& step, std::int64_t first) override {
    std::vector<double> logits(index((rows_.count - first) * step.outputs));
    multiply(step, first, logits);
    const double cap = setup_.shape.final_soft_cap;
    if (cap > 0 && setup_.plant != Plant::soft_cap_missing) {
      for (double& x : logits) x = cap * tanh_reference(x / cap).high;
    }
    return logits;
  }

  [[nodiscard]] std::vector<double> read(Buffer buffer, std::int64_t first_row,
                                         std::int64_t count) const override {
    const double* from =
        buffers_[static_cast<std::size_t>(buffer)].data() + first_row * width(buffer);
    return {from, from + count * width(buffer)};
  }

 private:
  [[nodiscard]] std::int64_t width(Buffer buffer) const {
    return buffer_width(setup_.shape, buffer);
  }
  [[nodiscard]] std::vector<double>& all(Buffer buffer) {
    return buffers_[static_cast<std::size_t>(buffer)];
  }

  void multiply(const LinearStep& step, std::int64_t first, std::span<double> out) {
    const std::int64_t rows = rows_.count - first;
    multiply_binary64({.rows = rows,
                       .terms = step.terms,
                       .columns = step.outputs,
                       .x = all(step.in).data() + first * step.terms,
                       .w = step.weights,
                       .w_stride = step.by_outputs ? step.terms : step.outputs,
                       .w_transposed = step.by_outputs},
                      out.data(), setup_.engine);
    if (step.bias == nullptr) return;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < step.outputs; ++j) {
        out[index(i * step.outputs + j)] += static_cast<double>(step.bias[j]);
      }
    }
  }

  OperatorSetup setup_;
  PassRows rows_;
  std::array<std::vector<double>, buffer_count> buffers_;
};

}  // namespace

std::unique_ptr<RowOperators> make_wide_operators(const OperatorSetup& setup) {
  return std::make_unique<WideOperators>(setup);
}

}  // namespace kvsim::decoder
