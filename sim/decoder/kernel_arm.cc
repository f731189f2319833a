// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "sim/decoder/decoder_arm.h"
#include "sim/decoder/heads.h"
#include "sim/decoder/wide_attention.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "softfloat/formats.h"

namespace kvsim::decoder {
namespace {

/// The kernels that a dispatch names, found in their tables.
struct Kernels {
  NormKernel norm;
  const RopeKernel* rope = nullptr;
  const ActivationKernel* activation = nullptr;
  const ResidualKernel* residual = nullptr;
  const AttentionKernel* prefill = nullptr;
  const AttentionKernel* decode = nullptr;
};

std::string_view activation_name(const Dispatch& dispatch, GateActivation activation) {
  switch (activation) {
    case GateActivation::silu:
      return dispatch.silu;
    case GateActivation::gelu:
      return dispatch.gelu;
    case GateActivation::gelu_tanh:
      break;
  }
  return dispatch.gelu_tanh;
}

Result<Kernels> find_kernels(const ArmSetup& setup) {
  const Dispatch& dispatch = setup.is_exact() ? *setup.element_wise : *setup.dispatch;
  const auto chosen = [](std::string_view override_name, std::string_view name) {
    return override_name.empty() ? name : override_name;
  };
  const std::string_view norm =
      setup.shape.norm_weight_plus_one ? dispatch.norm_plus_one : dispatch.norm;
  const std::string_view activation = activation_name(dispatch, setup.shape.activation);
  const std::string_view prefill = chosen(setup.prefill_attention, dispatch.attention_prefill);
  const std::string_view decode = chosen(setup.decode_attention, dispatch.attention_decode);
  const auto missing = [&](std::string_view what, std::string_view name) {
    return Error{ErrorKind::usage, fmt::format("{} kernel '{}' of dispatch {}; accepted: a name of "
                                               "the table of kernels",
                                               what, name.substr(0, 64), dispatch.name)};
  };
  const NormKernel* norm_row = find_norm_kernel(norm);
  if (norm_row == nullptr) return missing("norm", norm);
  Kernels kernels{.norm = *norm_row,
                  .rope = find_rope_kernel(dispatch.rope),
                  .activation = find_activation_kernel(activation),
                  .residual = find_residual_kernel(dispatch.residual),
                  .prefill = find_attention_kernel(prefill),
                  .decode = find_attention_kernel(decode)};
  if (kernels.rope == nullptr) return missing("rope", dispatch.rope);
  if (kernels.activation == nullptr) return missing("activation", activation);
  if (kernels.residual == nullptr) return missing("residual", dispatch.residual);
  if (setup.is_exact()) {
    kernels.norm.order = "exact";
    return kernels;
  }
  if (kernels.prefill == nullptr) return missing("attention", prefill);
  if (kernels.decode == nullptr) return missing("attention", decode);
  return kernels;
}

/// x as a float from which one more rounding, to a format of at most 22 bits, gives what rounding x
/// itself gives: truncated, with the last bit set where anything was lost.
float round_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || std::isnan(x)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

/// Every operator by the kernels of a dispatch, group by group. An exact arm sums exactly in linear
/// layers, norms and attention, and does the rest by the kernels, element by element.
class KernelArm : public DecoderArm {
 public:
  KernelArm(const ArmSetup& setup, const Kernels& kernels) : setup_(setup), kernels_(kernels) {
    for (std::size_t i = 0; i < buffer_count; ++i) {
      const std::int64_t size = setup_.tokens() * setup_.width(static_cast<Buffer>(i));
      buffers_[i].assign(static_cast<std::size_t>(size), 0);
    }
  }

  void start(std::span<const float> hidden) override {
    std::ranges::copy(hidden, all(Buffer::hidden).begin());
  }

  Result<bool> norm(const NormStep& step) override {
    const NormProblem problem{.storage = setup_.storage,
                              .rows = setup_.tokens() * setup_.width(step.in) / step.width,
                              .columns = step.width,
                              .x = all(step.in).data(),
                              .weight = step.weight,
                              .epsilon = setup_.shape.norm_epsilon};
    return apply_norm(kernels_.norm, problem, all(step.out).data(), setup_.engine);
  }

  Result<bool> linear(const LinearStep& step) override {
    for (const TokenGroup& group : setup_.groups) {
      const auto kernel = linear_kernel_for(*setup_.dispatch, group.count);
      if (!kernel) return kernel.error();
      const LinearProblem problem{.rows = group.count,
                                  .outputs = step.outputs,
                                  .terms = step.terms,
                                  .storage = setup_.storage,
                                  .multiprocessors = setup_.dispatch->multiprocessors,
                                  .x = all(step.in).data() + group.first * step.terms,
                                  .x_stride = step.terms,
                                  .w = step.weights,
                                  .w_stride = step.outputs,
                                  .bias = step.bias};
      Result<bool> done =
          apply_linear(**kernel, problem, all(step.out).data() + group.first * step.outputs,
                       step.outputs, setup_.engine);
      if (!done) return done;
    }
    return true;
  }

  Result<bool> rotate(const LayerPosition& layer) override {
    const Result<RopeTable> table =
        make_rope_table(*kernels_.rope, {.storage = setup_.storage,
                                         .rotated = setup_.shape.head_dim,
                                         .base = layer.rope_base,
                                         .positions = setup_.tokens(),
                                         .custom_frequencies = layer.custom_frequencies});
    if (!table) return table.error();
    for (const Buffer buffer : {Buffer::query, Buffer::key}) {
      std::vector<float>& x = all(buffer);
      const HeadLayout layout{setup_.tokens(), setup_.width(buffer) / setup_.shape.head_dim,
                              setup_.shape.head_dim};
      std::vector<float> heads = heads_first<float>(x, layout, 0, setup_.tokens());
      Result<bool> done = apply_rope(*kernels_.rope, *table,
                                     {.storage = setup_.storage,
                                      .heads = layout.heads,
                                      .length = setup_.tokens(),
                                      .head_dim = layout.head_dim,
                                      .x = heads.data()},
                                     heads.data(), setup_.engine);
      if (!done) return done;
      tokens_first<float>(heads, layout, 0, setup_.tokens(), x);
    }
    return true;
  }

  Result<bool> attend(const LayerPosition& layer) override {
    if (setup_.is_exact()) return attend_exactly(layer);
    const DecoderShape& shape = setup_.shape;
    const HeadLayout queries{setup_.tokens(), shape.query_heads, shape.head_dim};
    const HeadLayout keys{setup_.tokens(), shape.kv_heads, shape.head_dim};
    for (const TokenGroup& group : setup_.groups) {
      const std::int64_t length = group.first + group.count;
      const auto q = heads_first<float>(all(Buffer::query), queries, group.first, group.count);
      const auto k = heads_first<float>(all(Buffer::key), keys, 0, length);
      const auto v = heads_first<float>(all(Buffer::value), keys, 0, length);
      AttentionProblem problem;
      problem.shape = {shape.query_heads, shape.kv_heads, group.count, length, shape.head_dim};
      problem.mask = {.causal = true,
                      .window = layer.window,
                      .soft_cap = static_cast<float>(shape.attention_soft_cap)};
      problem.storage = setup_.storage;
      problem.scale = static_cast<float>(shape.attention_scale);
      problem.q = q.data();
      problem.k = k.data();
      problem.v = v.data();
      problem.launch.multiprocessors =
          setup_.dispatch->multiprocessors > 1 ? setup_.dispatch->multiprocessors : 0;
      problem.launch.splits = setup_.dispatch->attention_splits;
      AttentionOptions options = setup_.attention;
      options.engine = setup_.engine;
      const AttentionKernel& kernel = is_decode(group) ? *kernels_.decode : *kernels_.prefill;
      const Result<AttentionResult> result = run_attention(kernel, problem, options);
      if (!result) return result.error();
      exp_bounded_ = exp_bounded_ || result->exp_bounded;
      tokens_first<float>(result->out, queries, group.first, group.count, all(Buffer::attended));
    }
    return true;
  }

  Result<bool> multiply_gate() override {
    for (const TokenGroup& group : setup_.groups) {
      const std::span<float> gate = part(Buffer::gate, group);
      Result<bool> done =
          apply_activation(*kernels_.activation, setup_.storage, gate, gate, {}, setup_.engine);
      if (done) {
        done =
            multiply_elements(setup_.storage, gate, part(Buffer::up, group), gate, setup_.engine);
      }
      if (!done) return done;
    }
    return true;
  }

  Result<bool> add_branch() override {
    return add_residual(*kernels_.residual, setup_.storage, all(Buffer::hidden),
                        all(Buffer::branch), all(Buffer::hidden), setup_.engine);
  }

  [[nodiscard]] std::vector<double> read(Buffer buffer, std::int64_t first_token,
                                         std::int64_t count) const override {
    const std::int64_t width = setup_.width(buffer);
    const float* from = buffers_[static_cast<std::size_t>(buffer)].data() + first_token * width;
    return {from, from + count * width};
  }
  [[nodiscard]] bool exp_bounded() const override { return exp_bounded_; }

 private:
  /// In binary64, rounded to storage at the end.
  Result<bool> attend_exactly(const LayerPosition& layer) {
    const auto wide = [&](Buffer buffer) { return read(buffer, 0, setup_.tokens()); };
    const std::vector<double> query = wide(Buffer::query);
    const std::vector<double> key = wide(Buffer::key);
    const std::vector<double> value = wide(Buffer::value);
    std::vector<double> result(query.size());
    attend_binary64(setup_.shape, layer, setup_.tokens(), {query, key, value}, result,
                    setup_.engine.threads);
    std::vector<float>& out = all(Buffer::attended);
    const bool is_float = setup_.storage == softfloat::binary32;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = is_float ? static_cast<float>(result[i]) : round_to_odd(result[i]);
    }
    return round_values(setup_.storage, out, out, setup_.engine.level);
  }

  std::vector<float>& all(Buffer buffer) { return buffers_[static_cast<std::size_t>(buffer)]; }
  std::span<float> part(Buffer buffer, const TokenGroup& group) {
    const std::int64_t width = setup_.width(buffer);
    return std::span(all(buffer))
        .subspan(static_cast<std::size_t>(group.first * width),
                 static_cast<std::size_t>(group.count * width));
  }
  /// One token behind others: the cache is what it reads.
  static bool is_decode(const TokenGroup& group) { return group.count == 1 && group.first > 0; }

  ArmSetup setup_;
  Kernels kernels_;
  std::array<std::vector<float>, buffer_count> buffers_;
  bool exp_bounded_ = false;
};

}  // namespace

Result<std::unique_ptr<DecoderArm>> make_kernel_arm(const ArmSetup& setup) {
  const Result<Kernels> kernels = find_kernels(setup);
  if (!kernels) return kernels.error();
  return std::unique_ptr<DecoderArm>(std::make_unique<KernelArm>(setup, *kernels));
}

}  // namespace kvsim::decoder
