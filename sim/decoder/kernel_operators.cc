// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include "sim/decoder/attention_plan.h"
#include "sim/decoder/heads.h"
#include "sim/decoder/named_kernels.h"
#include "sim/decoder/rope_tables.h"
#include "sim/decoder/row_operators.h"
#include "sim/decoder/wide_attention.h"
#include "sim/elementary.h"
#include "softfloat/formats.h"

namespace kvsim::decoder {
namespace {

/// x as a float from which one more rounding, to a format of at most 22 bits, gives what rounding x
/// itself gives: truncated, with the last bit set where anything was lost.
float round_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

/// Every operator by the kernels of a dispatch. With exact arithmetic linear layers, norms and
/// attention sum exactly, and the rest is done by the kernels, element by element.
class KernelOperators : public RowOperators {
 public:
  KernelOperators(const OperatorSetup& setup, const NamedKernels& kernels)
      : setup_(setup),
        kernels_(kernels),
        tables_(kernels.rope, setup.formats.activations, setup.rope_source) {}

  void begin(const PassRows& rows) override {
    rows_ = rows;
    for (std::size_t i = 0; i < buffer_count; ++i) {
      const std::int64_t size = rows.computed() * width(static_cast<Buffer>(i));
      buffers_[i].resize(static_cast<std::size_t>(size));  // every operator writes all of its rows
    }
  }

  void start(std::span<const double> hidden) override {
    std::ranges::transform(hidden, all(Buffer::hidden).begin(),
                           [](double x) { return static_cast<float>(x); });
  }

  void replace_hidden(std::int64_t row, std::span<const double> values) override {
    std::ranges::transform(values, all(Buffer::hidden).begin() + row * width(Buffer::hidden),
                           [](double x) { return static_cast<float>(x); });
  }

  Result<bool> norm(const NormStep& step) override {
    const double epsilon =
        setup_.plant == Plant::wrong_epsilon ? wrong_epsilon : setup_.shape.norm_epsilon;
    const NormProblem problem{.storage = setup_.formats.activations,
                              .rows = rows_.computed() * width(step.in) / step.width,
                              .columns = step.width,
                              .x = all(step.in).data(),
                              .weight = step.weight,
                              .epsilon = epsilon};
    return apply_norm(kernels_.norm, problem, all(step.out).data(), setup_.engine);
  }

  Result<bool> linear(const LinearStep& step) override {
    return multiply(step, 0, rows_.known, setup_.formats.activations, all(step.out).data());
  }

  Result<bool> rotate(const LayerPosition& layer) override {
    const std::vector<std::int64_t> all_positions = planned_positions(setup_, rows_);
    const auto positions = std::span(all_positions).subspan(static_cast<std::size_t>(rows_.known));
    const Result<const RopeTable*> table =
        tables_.find(layer, setup_.shape.head_dim, *std::ranges::max_element(positions));
    if (!table) return table.error();
    for (const Buffer buffer : {Buffer::query, Buffer::key}) {
      for (std::size_t begin = 0; begin < positions.size();) {
        std::size_t end = begin + 1;
        while (end < positions.size() && positions[end] == positions[end - 1] + 1) ++end;
        Result<bool> done =
            rotate_run(**table, buffer,
                       {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin)},
                       positions[begin]);
        if (!done) return done;
        begin = end;
      }
    }
    return true;
  }

  Result<bool> store(const CacheLayer& cache) override {
    for (const auto& [part, buffer] :
         {std::pair{KvPart::key, Buffer::key}, std::pair{KvPart::value, Buffer::value}}) {
      std::vector<float> numbers = all(buffer);
      Result<bool> done = round(setup_.formats.kv, numbers);
      if (!done) return done;
      cache.cache->write(cache.layer, part, rows_.first + rows_.known, numbers);
    }
    return true;
  }

  Result<bool> attend(const LayerPosition& layer, const CacheLayer& cache) override {
    AttentionPlan plan = plan_attention(setup_, rows_, layer);
    std::ranges::fill(all(Buffer::attended), 0.0F);
    if (plan.queries == 0) return true;
    if (setup_.dispatch.arithmetic == DispatchArithmetic::exact) {
      return attend_exactly(plan, cache);
    }
    if (masks_padding(kernel())) plan = with_masked_padding(plan);
    Keys keys;
    if (is_planted_into_cache(setup_, rows_)) {
      planted_keys_ = cache.cache->read(cache.layer, KvPart::key, plan.first_key, plan.keys);
      planted_values_ = cache.cache->read(cache.layer, KvPart::value, plan.first_key, plan.keys);
      plant_into_cache<float>(setup_, rows_, plan, planted_keys_);
      plant_into_cache<float>(setup_, rows_, plan, planted_values_);
      keys = {planted_keys_.data(), planted_values_.data(), 0};
    } else {
      const std::int64_t first = plan.first_key * setup_.shape.head_dim;
      keys = {cache.cache->numbers_of(cache.layer, KvPart::key) + first,
              cache.cache->numbers_of(cache.layer, KvPart::value) + first,
              cache.cache->capacity() * setup_.shape.head_dim};
    }
    if (!plan.leaks) return attend_queries(plan, 0, plan.queries, keys);
    // One query fewer over the same keys stands one position further.
    Result<bool> done = attend_queries(plan, 0, plan.queries - 1, keys);
    return done ? attend_queries(plan, plan.queries - 1, 1, keys) : done;
  }

  Result<bool> multiply_gate() override {
    const softfloat::Format& storage = setup_.formats.activations;
    std::vector<float>& gate = all(Buffer::gate);
    Result<bool> done =
        apply_activation(kernels_.activation, storage, gate, gate, {}, setup_.engine);
    if (!done) return done;
    return multiply_elements(storage, gate, all(Buffer::up), gate, setup_.engine);
  }

  Result<bool> add_branch() override {
    return add_residual(kernels_.residual, setup_.formats.activations, all(Buffer::hidden),
                        all(Buffer::branch), all(Buffer::hidden), setup_.engine);
  }

  Result<std::vector<double>> head(const LinearStep& step, std::int64_t first) override {
    const softfloat::Format& format = setup_.formats.logits;
    std::vector<float> logits(static_cast<std::size_t>((rows_.count - first) * step.outputs));
    Result<bool> done = multiply(step, first, first, format, logits.data());
    const auto cap = static_cast<float>(setup_.shape.final_soft_cap);
    if (done && cap > 0 && setup_.plant != Plant::soft_cap_missing) {
      for (float& x : logits) x /= cap;
      done = round(format, logits);
      for (float& x : logits) x = tanh_f32(x);
      if (done) done = round(format, logits);
      for (float& x : logits) x *= cap;
      if (done) done = round(format, logits);
    }
    if (!done) return done.error();
    return std::vector<double>(logits.begin(), logits.end());
  }

  [[nodiscard]] std::vector<double> read(Buffer buffer, std::int64_t first_row,
                                         std::int64_t count) const override {
    const float* from =
        buffers_[static_cast<std::size_t>(buffer)].data() + first_row * width(buffer);
    return {from, from + count * width(buffer)};
  }
  [[nodiscard]] bool exp_bounded() const override { return exp_bounded_; }

 private:
  /// Keys and values of the heads, one K/V head after another.
  struct Keys {
    NumberPointer k;
    NumberPointer v;
    std::int64_t head_stride = 0;  ///< 0: as many as there are
  };
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  [[nodiscard]] std::int64_t width(Buffer buffer) const {
    return buffer_width(setup_.shape, buffer);
  }
  /// Of attention in this pass.
  [[nodiscard]] const AttentionKernel& kernel() const {
    return rows_.is_decode() ? *kernels_.decode : *kernels_.prefill;
  }
  [[nodiscard]] std::vector<float>& all(Buffer buffer) {
    return buffers_[static_cast<std::size_t>(buffer)];
  }
  Result<bool> round(const softfloat::Format& format, std::span<float> numbers) const {
    if (format == softfloat::binary32) return true;
    return round_values(format, numbers, numbers, setup_.engine.level);
  }

  /// The rows of the pass from `first` on through a linear layer that is launched with the rows
  /// from `launch_first` on, rounded to `output`, into out[rows][outputs].
  Result<bool> multiply(const LinearStep& step, std::int64_t launch_first, std::int64_t first,
                        const softfloat::Format& output, float* out) {
    const std::int64_t rows = rows_.count - first;
    const std::int64_t launched = rows_.launch.rows != 0 && launch_first == 0
                                      ? rows_.launch.rows
                                      : (rows_.count - launch_first) * rows_.launch.batch;
    const auto kernel = linear_kernel_for(setup_.dispatch, launched);
    if (!kernel) return kernel.error();
    const float* x = all(step.in).data() + (first - rows_.known) * step.terms;
    softfloat::Format operand = setup_.formats.activations;
    if (setup_.formats.operands) {
      operand = *setup_.formats.operands;
      operands_.assign(x, x + rows * step.terms);
      Result<bool> rounded = round(operand, operands_);
      if (!rounded) return rounded;
      x = operands_.data();
    }
    LinearProblem problem{.rows = rows,
                          .outputs = step.outputs,
                          .terms = step.terms,
                          .storage = joint_format(operand, step.format),
                          .multiprocessors = setup_.dispatch.multiprocessors,
                          .launch_rows = launched,
                          .x = x,
                          .x_stride = step.terms,
                          .w = step.weights,
                          .w_stride = step.by_outputs ? step.terms : step.outputs,
                          .w_by_outputs = step.by_outputs,
                          .bias = step.bias};
    if (!(problem.storage == output)) problem.output = output;
    problem.accumulator = setup_.formats.accumulator;
    return apply_linear(**kernel, problem, out, step.outputs, setup_.engine);
  }

  /// Rows of a buffer that stand at consecutive positions.
  Result<bool> rotate_run(const RopeTable& table, Buffer buffer, const Run& run,
                          std::int64_t position) {
    const std::int64_t d = setup_.shape.head_dim;
    const HeadLayout layout{rows_.computed(), width(buffer) / d, d};
    std::vector<float>& x = all(buffer);
    std::vector<float> heads = heads_first<float>(x, layout, run.first, run.count);
    Result<bool> done = apply_rope(kernels_.rope, table,
                                   {.storage = setup_.formats.activations,
                                    .heads = layout.heads,
                                    .length = run.count,
                                    .head_dim = d,
                                    .first_position = position,
                                    .x = heads.data()},
                                   heads.data(), setup_.engine);
    if (done) tokens_first<float>(heads, layout, run.first, run.count, x);
    return done;
  }

  /// Queries first … of the plan, but for those whose rows are known.
  Result<bool> attend_queries(const AttentionPlan& plan, std::int64_t first, std::int64_t count,
                              const Keys& keys) {
    const DecoderShape& shape = setup_.shape;
    const HeadLayout layout{rows_.computed(), shape.query_heads, shape.head_dim};
    const std::int64_t first_row = plan.first_query + first;  // of the buffers: none where known
    std::vector<float> q =
        heads_first<float>(all(Buffer::query), layout, first_row, count - rows_.known);
    const softfloat::Format& operand = setup_.formats.operands.value_or(setup_.formats.activations);
    if (setup_.formats.operands) {
      Result<bool> rounded = round(operand, q);
      if (!rounded) return rounded;
    }
    const bool decode = rows_.is_decode();
    AttentionProblem problem;
    problem.shape = {shape.query_heads, shape.kv_heads, count, plan.keys, shape.head_dim};
    problem.mask = {.causal = plan.causal,
                    .window = plan.window,
                    .soft_cap = static_cast<float>(plan.soft_cap),
                    .first_key = plan.masked_keys};
    problem.storage = joint_format(operand, setup_.formats.kv);
    problem.scale = static_cast<float>(plan.scale);
    problem.first_query = rows_.known;
    problem.q = q.data();
    problem.k = keys.k;
    problem.v = keys.v;
    problem.kv_head_stride = keys.head_stride;
    problem.launch.batch = rows_.launch.batch;
    problem.launch.kv_lens = rows_.launch.kv_lens;
    for (const std::int64_t length : rows_.launch.kv_lens) {
      problem.launch.longest_kv_len = std::max({problem.launch.longest_kv_len, length, plan.keys});
    }
    problem.launch.multiprocessors =
        setup_.dispatch.multiprocessors > 1 ? setup_.dispatch.multiprocessors : 0;
    problem.launch.splits = decode ? setup_.dispatch.decode_splits : setup_.dispatch.prefill_splits;
    AttentionOptions options = setup_.attention;
    options.engine = setup_.engine;
    Result<AttentionResult> result = run_attention(kernel(), problem, options);
    if (!result) return result.error();
    exp_bounded_ = exp_bounded_ || result->exp_bounded;
    Result<bool> rounded = round(setup_.formats.activations, result->out);
    if (!rounded) return rounded;
    tokens_first<float>(result->out, layout, first_row, count - rows_.known, all(Buffer::attended));
    return true;
  }

  /// In binary64, rounded to storage at the end.
  Result<bool> attend_exactly(const AttentionPlan& plan, const CacheLayer& cache) {
    const std::vector<double> result = attend_binary64(
        setup_, rows_, plan, cache, read(Buffer::query, plan.first_query, plan.queries));
    const std::span<float> out =
        std::span(all(Buffer::attended))
            .subspan(static_cast<std::size_t>(plan.first_query * width(Buffer::attended)));
    const bool is_float = setup_.formats.activations == softfloat::binary32;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = is_float ? static_cast<float>(result[i]) : round_to_odd(result[i]);
    }
    return round(setup_.formats.activations, out);
  }

  OperatorSetup setup_;
  NamedKernels kernels_;
  RopeTables tables_;
  PassRows rows_;
  std::array<std::vector<float>, buffer_count> buffers_;
  std::vector<float> operands_;
  std::vector<float> planted_keys_;
  std::vector<float> planted_values_;
  bool exp_bounded_ = false;
};

}  // namespace

Result<std::unique_ptr<RowOperators>> make_kernel_operators(const OperatorSetup& setup) {
  const Result<NamedKernels> kernels = find_kernels(setup);
  if (!kernels) return kernels.error();
  return std::unique_ptr<RowOperators>(std::make_unique<KernelOperators>(setup, *kernels));
}

}  // namespace kvsim::decoder
