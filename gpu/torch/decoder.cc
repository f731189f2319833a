// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch/decoder.h"

#include <ATen/ATen.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/torch/decoder_operators.h"
#include "gpu/torch/decoder_weights.h"
#include "gpu/torch/guarded.h"

namespace kvsim::gpu::aten {
namespace {

using at::Tensor;

class Model : public TorchModel {
 public:
  explicit Model(const TorchModelSpec& spec)
      : config_(*spec.config),
        context_{config_, scalar_type(spec.storage), spec.on_cuda ? at::kCUDA : at::kCPU,
                 AttentionFunction::eager},
        weights_(*spec.weights, context_.storage, context_.device) {
    frequencies_ = {rope_frequencies(context_, false), rope_frequencies(context_, true)};
  }

  [[nodiscard]] std::unique_ptr<TorchSequence> open(AttentionFunction attention,
                                                    std::int64_t threads) const override;

  [[nodiscard]] bool windowed(std::int64_t layer) const {
    return config_.window > 0 &&
           (config_.has_window.empty() || config_.has_window[static_cast<std::size_t>(layer)]);
  }
  [[nodiscard]] RopeFactors rope_of(bool windowed, PassSpan rows) const {
    return rope_factors(context_, frequencies_[windowed ? 1 : 0], rows);
  }
  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const OperatorContext& context() const { return context_; }
  [[nodiscard]] const ModelTensors& weights() const { return weights_; }
  /// ModelTensors::output with rows and columns swapped in memory; made when it is first asked for.
  [[nodiscard]] const Tensor& transposed_output() const {
    std::call_once(transposing_, [this] { transposed_ = weights_.output.t().contiguous(); });
    return transposed_;
  }

 private:
  ModelConfig config_;
  OperatorContext context_;
  ModelTensors weights_;
  std::array<Tensor, 2> frequencies_;  ///< of layers without a window, and with one
  mutable std::once_flag transposing_;
  mutable Tensor transposed_;
};

/// Keys and values of a layer, [1][kv_heads][rows][head_dim]; never written in place.
struct LayerCache {
  Tensor key;
  Tensor value;
};

class Sequence : public TorchSequence {
 public:
  Sequence(const Model& model, AttentionFunction attention, std::int64_t threads)
      : model_(model),
        context_{model.config(), model.context().storage, model.context().device, attention},
        threads_(threads),
        cache_(static_cast<std::size_t>(model.config().layers)) {}

  Result<std::vector<double>> pass(const TorchPass& pass) override {
    return guarded<std::vector<double>>([&] {
      use_threads(threads_);
      return run(pass);
    });
  }
  [[nodiscard]] std::int64_t rows() const override { return rows_; }
  void truncate(std::int64_t rows) override { rows_ = std::clamp<std::int64_t>(rows, 0, rows_); }
  [[nodiscard]] std::vector<double> state(std::int64_t layer, KvPart part, std::int64_t first,
                                          std::int64_t count) const override {
    const LayerCache& cache = cache_[static_cast<std::size_t>(layer)];
    const Tensor& all = part == KvPart::key ? cache.key : cache.value;
    const Result<std::vector<double>> numbers =
        guarded<std::vector<double>>([&] { return doubles_of(all.narrow(2, first, count)); });
    return numbers ? *numbers : std::vector<double>();
  }
  Result<bool> set_state(std::int64_t layer, KvPart part, std::int64_t first,
                         std::span<const double> numbers) override {
    LayerCache& cache = cache_[static_cast<std::size_t>(layer)];
    Tensor& all = part == KvPart::key ? cache.key : cache.value;
    return guarded<bool>([&] {
      const std::int64_t rows = std::ssize(numbers) / (all.size(1) * all.size(3));
      Tensor changed = all.clone();  // copies of the sequence share the tensor
      changed.narrow(2, first, rows)
          .copy_(tensor_of(numbers).reshape({1, all.size(1), rows, all.size(3)}));
      all = std::move(changed);
      return true;
    });
  }
  [[nodiscard]] std::unique_ptr<TorchSequence> copy() const override {
    auto made = std::make_unique<Sequence>(model_, context_.attention, threads_);
    made->rows_ = rows_;
    made->cache_ = cache_;
    return made;
  }

 private:
  /// What the layers of one kind share in a pass.
  struct Kind {
    RopeFactors rope;
    std::optional<Tensor> mask;
    std::int64_t window = 0;
  };

  std::vector<double> run(const TorchPass& pass);
  Tensor layer(std::int64_t i, const Tensor& hidden, const Kind& kind);
  Tensor attention(const LayerTensors& weights, const Tensor& normed, const Kind& kind);
  Tensor mlp(const LayerTensors& weights, const Tensor& normed);
  LayerCache extend(const Tensor& key, const Tensor& value, std::int64_t window);

  Tensor norm(std::string_view name, const Tensor& x, const Tensor& weight,
              bool heads_first = false) {
    Tensor out = rms_norm(context_, x, weight);
    observe(name, out, heads_first);
    return out;
  }
  Tensor linear(std::string_view name, const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const std::optional<Tensor> added = bias.defined() ? std::optional(bias) : std::nullopt;
    Tensor out = at::linear(x, weight, added);
    observe(name, out);
    return out;
  }
  /// The logits of `hidden`, which is the last row of a pass where `sliced`. ATen multiplies such a
  /// row in bfloat16 as a batch of one, for which it copies the whole matrix, transposed, at each
  /// call. A copy that is kept makes the same call of oneDNN, so the bits stay.
  Tensor head(const Tensor& hidden, bool sliced) {
    const Tensor& output = model_.weights().output;
    const bool copies = sliced && output.is_cpu() && output.scalar_type() == at::kBFloat16;
    return copies ? at::matmul(hidden, model_.transposed_output()) : at::linear(hidden, output);
  }
  /// Hands on what an operator gives: [1][rows]…, or with `heads_first` [1][heads][rows]….
  void observe(std::string_view name, const Tensor& x, bool heads_first = false) {
    if (!pass_->observer || (!pass_->every_operator && name != "hidden")) return;
    const Tensor rows = heads_first ? x.transpose(1, 2) : x;
    const std::vector<double> numbers = doubles_of(rows);
    const std::int64_t count = rows.size(1);
    pass_->observer({layer_, name, count, std::ssize(numbers) / count, numbers});
  }

  const Model& model_;
  OperatorContext context_;
  std::int64_t threads_;
  std::int64_t rows_ = 0;
  std::vector<LayerCache> cache_;
  // Of the pass that is running.
  const TorchPass* pass_ = nullptr;
  PassSpan span_;
  std::int64_t layer_ = 0;
  std::vector<LayerCache> next_;
};

std::unique_ptr<TorchSequence> Model::open(AttentionFunction attention,
                                           std::int64_t threads) const {
  return std::make_unique<Sequence>(*this, attention, threads);
}

std::vector<double> Sequence::run(const TorchPass& pass) {
  const ModelConfig& config = model_.config();
  pass_ = &pass;
  span_ = {rows_, std::ssize(pass.tokens)};
  next_.clear();
  layer_ = -1;
  const std::vector<std::int64_t> ids(pass.tokens.begin(), pass.tokens.end());
  Tensor hidden = at::embedding(model_.weights().embedding,
                                at::tensor(ids, at::kLong).unsqueeze(0).to(context_.device));
  if (config.scaled_embedding) {
    const double scale = std::sqrt(static_cast<double>(config.hidden));
    hidden = hidden * at::scalar_tensor(scale, hidden.options());
  }
  observe("embedding", hidden);
  std::array<std::optional<Kind>, 2> kinds;
  for (layer_ = 0; layer_ < config.layers; ++layer_) {
    const bool windowed = model_.windowed(layer_);
    std::optional<Kind>& kind = kinds[windowed ? 1 : 0];
    if (!kind) {
      const std::int64_t window = windowed ? config.window : 0;
      kind = Kind{model_.rope_of(windowed, span_), attention_mask(context_, span_, window), window};
    }
    hidden = layer(layer_, hidden, *kind);
    for (const HiddenReplacement& replacement : pass.replaced) {
      if (replacement.layer != layer_) continue;
      hidden.select(1, replacement.row).copy_(tensor_of(replacement.values).unsqueeze(0));
    }
    observe("hidden", hidden);
  }
  hidden = norm("final-norm", hidden, model_.weights().final_norm);
  const bool sliced = !pass.all_logits && span_.rows > 1;
  if (sliced) hidden = hidden.narrow(1, span_.rows - 1, 1);
  const Tensor logits = soft_cap(head(hidden, sliced), config.final_soft_cap);
  observe("logits", logits);
  std::vector<double> numbers = doubles_of(logits);
  cache_ = std::move(next_);
  rows_ += span_.rows;
  return numbers;
}

Tensor Sequence::layer(std::int64_t i, const Tensor& hidden, const Kind& kind) {
  const LayerTensors& weights = model_.weights().layers[static_cast<std::size_t>(i)];
  const bool sandwich = model_.config().sandwich_norms;
  Tensor branch = attention(weights, norm("attention-norm", hidden, weights.attention_norm), kind);
  if (sandwich) branch = norm("attention-post-norm", branch, weights.attention_post_norm);
  const Tensor middle = hidden + branch;
  observe("residual", middle);
  branch = mlp(weights, norm("mlp-norm", middle, weights.mlp_norm));
  if (sandwich) branch = norm("mlp-post-norm", branch, weights.mlp_post_norm);
  Tensor out = middle + branch;
  observe("residual", out);
  return out;
}

Tensor Sequence::attention(const LayerTensors& weights, const Tensor& normed, const Kind& kind) {
  const ModelConfig& config = model_.config();
  const auto heads = [&](const Tensor& x) { return x.view({1, span_.rows, -1, config.head_dim}); };
  Tensor query = heads(linear("query", normed, weights.query, weights.query_bias));
  Tensor key = heads(linear("key", normed, weights.key, weights.key_bias));
  const Tensor value =
      heads(linear("value", normed, weights.value, weights.value_bias)).transpose(1, 2);
  // Gemma-3 norms the heads behind the transposition, Qwen3 before it.
  const bool norms_transposed = config.norm_weight_plus_one;
  if (norms_transposed) {
    query = query.transpose(1, 2);
    key = key.transpose(1, 2);
  }
  if (config.qk_norm) {
    query = norm("query-norm", query, weights.query_norm, norms_transposed);
    key = norm("key-norm", key, weights.key_norm, norms_transposed);
  }
  if (!norms_transposed) {
    query = query.transpose(1, 2);
    key = key.transpose(1, 2);
  }
  query = rotate(context_, query, kind.rope);
  observe("query-rope", query, true);
  key = rotate(context_, key, kind.rope);
  observe("key-rope", key, true);
  const LayerCache seen = extend(key, value, kind.window);
  const Tensor attended = attend(context_, query, seen.key, seen.value, kind.mask)
                              .reshape({1, span_.rows, -1})
                              .contiguous();
  observe("attention", attended);
  return linear("output", attended, weights.output, weights.output_bias);
}

Tensor Sequence::mlp(const LayerTensors& weights, const Tensor& normed) {
  const Tensor gate = linear("gate", normed, weights.gate, weights.gate_bias);
  const Tensor up = linear("up", normed, weights.up, weights.up_bias);
  const Tensor product = activation(context_, gate) * up;
  observe("gate-product", product);
  return linear("down", product, weights.down, weights.down_bias);
}

/// Appends to the cache, and holds what the layer sees of it. All rows are kept, so that a later
/// pass can begin at any of them; with a window the layer sees those that transformers keeps.
LayerCache Sequence::extend(const Tensor& key, const Tensor& value, std::int64_t window) {
  const LayerCache& before = cache_[static_cast<std::size_t>(layer_)];
  const auto append = [&](const Tensor& old, const Tensor& added, std::int64_t kept) {
    const Tensor rows = span_.first == 0 ? at::empty({0}, added.options())
                                         : old.narrow(2, span_.first - kept, kept);
    return at::cat({rows, added}, -2);
  };
  next_.push_back({append(before.key, key, span_.first), append(before.value, value, span_.first)});
  const std::int64_t kept = kept_rows(span_, window);
  if (kept == span_.first) return next_.back();
  return {append(before.key, key, kept), append(before.value, value, kept)};
}

}  // namespace
}  // namespace kvsim::gpu::aten

extern "C" __attribute__((visibility("default"))) void kvsim_make_torch_model(
    const kvsim::gpu::TorchModelSpec& spec,
    kvsim::Result<std::unique_ptr<kvsim::gpu::TorchModel>>& model) {
  using kvsim::gpu::TorchModel;
  // What CUDA adds registers itself when it is loaded; it stands beside libtorch_cpu.
  if (spec.on_cuda) ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL);
  if (spec.on_cuda && !at::hasCUDA()) {
    model = kvsim::Error{kvsim::ErrorKind::unavailable,
                         "torch-cuda: no CUDA device, or a libtorch without CUDA; sim and "
                         "torch-cpu are available"};
    return;
  }
  model = kvsim::gpu::aten::guarded<std::unique_ptr<TorchModel>>([&] {
    at::globalContext().setUserEnabledMkldnn(spec.uses_onednn);
    return std::unique_ptr<TorchModel>(std::make_unique<kvsim::gpu::aten::Model>(spec));
  });
}
