// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/sim_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gpu/attention_attributes.h"
#include "gpu/operators.h"
#include "gpu/sim_products.h"
#include "sim/attention/kernel.h"
#include "sim/attention/run.h"
#include "sim/linear.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/softmax.h"
#include "softfloat/formats.h"
#include "softfloat/suggest.h"

namespace kvsim::gpu {
namespace {

using Shape = std::vector<std::int64_t>;

/// Names of formats, each once.
class FormatNames {
 public:
  void add(const softfloat::Format& format) {
    const std::string name(softfloat::format_name(format));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::vector<std::string> names;
};

std::vector<std::string> storage_formats() { return {"binary32", "bfloat16", "binary16"}; }

/// What one kind of kernel does as a back end.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  [[nodiscard]] virtual std::vector<OperatorSupport> operators() const = 0;
  [[nodiscard]] virtual std::span<const std::string_view> attributes() const = 0;
  [[nodiscard]] virtual Result<Tensor> run(const OperatorCall& call, Shape shape,
                                           const EngineOptions& options) const = 0;
  [[nodiscard]] virtual std::string_view source() const = 0;
};

class OrderedKernel final : public Kernel {
 public:
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    std::vector<std::string> formats;
    for (const softfloat::NamedFormat& row : softfloat::formats()) {
      if (row.format != softfloat::binary64 && row.format != softfloat::e8m0) {
        formats.emplace_back(row.name);
      }
    }
    std::vector<OperatorSupport> offered;
    for (const char* const name :
         {"linear", "matmul", "gemm", "bmm", "dot", "gemv", "sum", "mean"}) {
      offered.push_back({name, formats, "attributes order, product, accumulator, output"});
    }
    return offered;
  }
  [[nodiscard]] std::span<const std::string_view> attributes() const override {
    return ordered_attributes;
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call, Shape shape,
                                   const EngineOptions& options) const override {
    return run_ordered(call, std::move(shape), options);
  }
  [[nodiscard]] std::string_view source() const override { return "the call's attributes"; }
};

class LinearRow final : public Kernel {
 public:
  explicit LinearRow(const LinearKernel& row) : row_(row) {}
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    FormatNames formats;
    for (const LinearRule& rule : row_.rules) formats.add(rule.storage);
    std::vector<OperatorSupport> offered;
    for (const char* const name : {"linear", "matmul", "gemm", "bmm", "dot", "gemv"}) {
      offered.push_back({name, formats.names, "attributes output, multiprocessors"});
    }
    return offered;
  }
  [[nodiscard]] std::span<const std::string_view> attributes() const override {
    return linear_kernel_attributes;
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call, Shape shape,
                                   const EngineOptions& options) const override {
    return run_linear_kernel(row_, call, std::move(shape), options);
  }
  [[nodiscard]] std::string_view source() const override { return row_.source; }

 private:
  const LinearKernel& row_;
};

class AttentionRow final : public Kernel {
 public:
  explicit AttentionRow(const AttentionKernel& row) : row_(row) {}
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    FormatNames formats;
    for (const StorageSums& sums : row_.storages) formats.add(sums.storage);
    return {{"sdpa", formats.names, "attributes causal, scale, splits, split-size"}};
  }
  [[nodiscard]] std::span<const std::string_view> attributes() const override {
    static constexpr std::string_view names[] = {"causal", "scale", "splits", "split-size"};
    return names;
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call, Shape shape,
                                   const EngineOptions& options) const override;
  [[nodiscard]] std::string_view source() const override { return row_.source; }

 private:
  const AttentionKernel& row_;
};

Result<Tensor> AttentionRow::run(const OperatorCall& call, Shape shape,
                                 const EngineOptions& options) const {
  const Shape& q = call.inputs[0].shape;
  const Shape& k = call.inputs[1].shape;
  AttentionProblem problem;
  problem.shape = {
      .query_heads = q[0], .kv_heads = k[0], .query_len = q[1], .kv_len = k[1], .head_dim = q[2]};
  problem.storage = call.inputs[0].format;
  problem.q = call.inputs[0].values.data();
  problem.k = call.inputs[1].values.data();
  problem.v = call.inputs[2].values.data();
  const auto set = set_attention_attributes(call.attributes, problem);
  if (!set) return set.error();
  auto result = run_attention(row_, problem, {options, {}});
  if (!result) return result.error();
  return Tensor{.format = output_format(row_, problem.storage),
                .shape = std::move(shape),
                .values = std::move(result->out)};
}

class NormRow final : public Kernel {
 public:
  explicit NormRow(const NormKernel& row) : row_(row) {}
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    return {{row_.kind == NormKind::rms ? "rms-norm" : "layer-norm", storage_formats(),
             "attribute eps"}};
  }
  [[nodiscard]] std::span<const std::string_view> attributes() const override {
    static constexpr std::string_view names[] = {"eps"};
    return names;
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call, Shape shape,
                                   const EngineOptions& options) const override {
    const auto epsilon = number_attribute(call, "eps", 1e-6);
    if (!epsilon) return epsilon.error();
    const Tensor& x = call.inputs[0];
    NormProblem problem{.storage = x.format, .columns = shape.back(), .epsilon = *epsilon};
    problem.rows = static_cast<std::int64_t>(x.values.size()) / problem.columns;
    problem.x = x.values.data();
    if (call.inputs.size() > 1) problem.weight = call.inputs[1].values.data();
    if (call.inputs.size() > 2) problem.bias = call.inputs[2].values.data();
    Tensor out = zero_tensor(x.format, std::move(shape));
    const auto done = apply_norm(row_, problem, out.values.data(), options);
    if (!done) return done.error();
    return out;
  }
  [[nodiscard]] std::string_view source() const override { return row_.source; }

 private:
  const NormKernel& row_;
};

class SoftmaxRow final : public Kernel {
 public:
  explicit SoftmaxRow(const SoftmaxKernel& row) : row_(row) {}
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    return {{takes_logarithm(row_.result) ? "log-softmax" : "softmax", storage_formats(), ""}};
  }
  [[nodiscard]] std::span<const std::string_view> attributes() const override { return {}; }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call, Shape shape,
                                   const EngineOptions& options) const override {
    const Tensor& x = call.inputs[0];
    SoftmaxProblem problem{.storage = x.format, .columns = shape.back(), .x = x.values.data()};
    problem.rows = static_cast<std::int64_t>(x.values.size()) / problem.columns;
    Tensor out = zero_tensor(x.format, std::move(shape));
    const auto done = apply_softmax(row_, problem, out.values.data(), options);
    if (!done) return done.error();
    return out;
  }
  [[nodiscard]] std::string_view source() const override { return row_.source; }

 private:
  const SoftmaxKernel& row_;
};

class ActivationRow final : public Kernel {
 public:
  explicit ActivationRow(const ActivationKernel& row) : row_(row) {}
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    return {{std::string(to_string(row_.function)), storage_formats(), ""}};
  }
  [[nodiscard]] std::span<const std::string_view> attributes() const override { return {}; }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call, Shape shape,
                                   const EngineOptions& options) const override {
    const Tensor& x = call.inputs[0];
    Tensor out = zero_tensor(x.format, std::move(shape));
    const auto done = apply_activation(row_, x.format, x.values, out.values, {}, options);
    if (!done) return done.error();
    return out;
  }
  [[nodiscard]] std::string_view source() const override { return row_.source; }

 private:
  const ActivationKernel& row_;
};

template <class Wrapper, class Row>
std::unique_ptr<Kernel> wrap(const Row* row) {
  return row == nullptr ? nullptr : std::make_unique<Wrapper>(*row);
}

/// The kernel of that name in whichever table has it; null if none does.
std::unique_ptr<Kernel> find_kernel(std::string_view name) {
  if (name.empty()) return std::make_unique<OrderedKernel>();
  if (auto kernel = wrap<LinearRow>(find_linear_kernel(name))) return kernel;
  if (auto kernel = wrap<AttentionRow>(find_attention_kernel(name))) return kernel;
  if (auto kernel = wrap<NormRow>(find_norm_kernel(name))) return kernel;
  if (auto kernel = wrap<SoftmaxRow>(find_softmax_kernel(name))) return kernel;
  return wrap<ActivationRow>(find_activation_kernel(name));
}

class SimBackend final : public Backend {
 public:
  SimBackend(std::string_view name, std::unique_ptr<Kernel> kernel)
      : name_(name.empty() ? "sim" : fmt::format("sim:{}", name)), kernel_(std::move(kernel)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Fingerprint fingerprint() const override {
    return {{{std::string(fingerprint_names::backend), name_},
             {"source", std::string(kernel_->source())},
             {std::string(fingerprint_names::threads), fmt::to_string(options_.threads)}}};
  }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    return kernel_->operators();
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    auto shape = check_call(name_, call, operators(), kernel_->attributes());
    if (!shape) return shape.error();
    return kernel_->run(call, std::move(*shape), options_);
  }
  [[nodiscard]] Result<bool> set_threads(std::int64_t n) override {
    if (n < 1 || n > 4096) {
      return Error{ErrorKind::usage, fmt::format("{} threads: 1 … 4096 are accepted", n)};
    }
    options_.threads = static_cast<int>(n);
    return true;
  }

 private:
  std::string name_;
  std::unique_ptr<Kernel> kernel_;
  EngineOptions options_;
};

/// Every name that find_kernel() knows.
std::vector<std::string_view> kernel_names() {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& rows) {
    std::transform(rows.begin(), rows.end(), std::back_inserter(names),
                   [](const auto& row) { return row.name; });
  };
  add(linear_kernels());
  add(attention_kernels());
  add(norm_kernels());
  add(softmax_kernels());
  add(activation_kernels());
  return names;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_sim_backend(std::string_view kernel) {
  auto found = find_kernel(kernel);
  if (found == nullptr) {
    const std::string_view near = softfloat::nearest(kernel, kernel_names());
    return Error{ErrorKind::usage,
                 fmt::format("sim: no linear, attention, norm, softmax or activation kernel is "
                             "called '{:.80}'{}",
                             kernel,
                             near.empty() ? "; kvsim kernels lists them"
                                          : fmt::format(": did you mean '{}'?", near))};
  }
  return std::unique_ptr<Backend>(std::make_unique<SimBackend>(kernel, std::move(found)));
}

}  // namespace kvsim::gpu
