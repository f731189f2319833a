// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cuda_device.h"
#include "gpu/host_cpu.h"
#include "gpu/operators.h"
#include "gpu/setting.h"
#include "gpu/torch/torch_module.h"
#include "gpu/torch_library.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// Attributes of one operator.
std::vector<std::string_view> attributes_of(std::string_view operation) {
  if (operation == "sdpa") return {"causal", "scale", "backend"};
  if (operation == "rms-norm" || operation == "layer-norm") return {"eps"};
  for (const std::string_view name : {"sum", "mean", "softmax", "log-softmax"}) {
    if (operation == name) return {"output"};
  }
  return {};
}

Error usage(std::string message) { return Error{ErrorKind::usage, std::move(message)}; }

Result<bool> read_attention(const OperatorCall& call, TorchCall& read) {
  const auto causal = flag_attribute(call, "causal", false);
  if (!causal) return causal.error();
  read.causal = *causal;
  const std::int64_t queries = call.inputs[0].shape[1];
  const std::int64_t keys = call.inputs[1].shape[1];
  if (read.causal && queries != keys) {
    return usage(
        fmt::format("sdpa: {} queries and {} keys: PyTorch's causal mask needs as many of "
                    "each",
                    queries, keys));
  }
  const std::string backend = text_attribute(call, "backend", "chosen");
  if (backend == "flash") {
    read.attention = TorchAttention::flash;
  } else if (backend == "math") {
    read.attention = TorchAttention::math;
  } else if (backend == "eager") {
    read.attention = TorchAttention::eager;
  } else if (backend != "chosen") {
    return usage(fmt::format("sdpa: attribute backend={:.40} is none of chosen, flash, math, eager",
                             backend));
  }
  return true;
}

/// Reads the attributes of a checked call.
Result<TorchCall> read_call(const OperatorCall& call) {
  TorchCall read{.call = call, .scale = {}, .epsilon = {}, .output = {}};
  if (call.operation == "sdpa") {
    if (const auto done = read_attention(call, read); !done) return done.error();
  }
  for (const auto& [name, field] :
       {std::pair{"scale", &read.scale}, std::pair{"eps", &read.epsilon}}) {
    if (!call.attributes.contains(name)) continue;
    const auto number = number_attribute(call, name, 0);
    if (!number) return number.error();
    *field = *number;
  }
  const std::string output = text_attribute(call, "output", "");
  if (output.empty()) return read;
  const softfloat::NamedFormat* const format = softfloat::find_format(output);
  if (format == nullptr ||
      (format->format != softfloat::binary32 && format->format != softfloat::bfloat16 &&
       format->format != softfloat::binary16)) {
    return usage(fmt::format("{}: attribute output={:.40} is none of binary32, bfloat16, binary16",
                             call.operation, output));
  }
  read.output = format->format;
  return read;
}

class TorchBackend final : public Backend {
 public:
  TorchBackend(std::string_view name, std::unique_ptr<TorchModule> module,
               std::optional<CudaDevice> device)
      : name_(name), module_(std::move(module)), device_(std::move(device)) {}

  [[nodiscard]] std::string name() const override { return name_; }

  [[nodiscard]] Fingerprint fingerprint() const override {
    Fingerprint fingerprint;
    fingerprint.entries.emplace_back(fingerprint_names::backend, name_);
    for (auto& entry : module_->describe()) fingerprint.entries.push_back(std::move(entry));
    add_host_cpu(fingerprint);
    if (device_) add_cuda_device(*device_, fingerprint);
    fingerprint.entries.emplace_back(fingerprint_names::setting, current_setting().name);
    for (const char* const variable :
         {"MKL_CBWR", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA",
          "ONEDNN_DEFAULT_FPMATH_MODE", "OMP_NUM_THREADS"}) {
      const char* const value = std::getenv(variable);
      if (value != nullptr) fingerprint.entries.emplace_back(variable, value);
    }
    return fingerprint;
  }

  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    std::vector<OperatorSupport> offered;
    for (const OperatorRow& row : operator_rows()) {
      const std::vector<std::string_view> attributes = attributes_of(row.name);
      offered.push_back(
          {std::string(row.name),
           {"binary32", "bfloat16", "binary16"},
           attributes.empty() ? "" : fmt::format("attributes {}", fmt::join(attributes, ", "))});
    }
    return offered;
  }

  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    const auto shape = check_call(name_, call, operators(), attributes_of(call.operation));
    if (!shape) return shape.error();
    const auto read = read_call(call);
    if (!read) return read.error();
    module_->set_threads(threads_);
    auto result = module_->run(*read);
    if (!result) return result.error();
    if (result->shape != *shape) {
      return Error{ErrorKind::file,
                   fmt::format("{}: {} gave shape {} instead of {}", name_, call.operation,
                               shape_text(result->shape), shape_text(*shape))};
    }
    return result;
  }

  [[nodiscard]] Result<bool> set_threads(std::int64_t n) override {
    if (n < 1 || n > 1024) return usage(fmt::format("{} threads: 1 … 1024 are accepted", n));
    threads_ = n;
    module_->set_threads(n);
    return true;
  }

 private:
  std::string name_;
  std::unique_ptr<TorchModule> module_;
  std::optional<CudaDevice> device_;
  std::int64_t threads_ = 1;
};

Result<std::unique_ptr<Backend>> make(std::string_view name, bool cuda) {
  std::optional<CudaDevice> device;
  if (cuda) {
    auto found = find_cuda_device();
    if (!found) {
      return Error{found.error().kind, fmt::format("{}: {}", name, found.error().message)};
    }
    device = std::move(*found);
  }
  const auto make_module = torch_function<MakeTorchModule>(name, "kvsim_make_torch_module");
  if (!make_module) return make_module.error();
  std::string error;
  std::unique_ptr<TorchModule> module(
      (*make_module)({.cuda = cuda, .onednn = current_setting().onednn}, &error));
  if (module == nullptr) return torch_missing(name, error);
  return std::unique_ptr<Backend>(
      std::make_unique<TorchBackend>(name, std::move(module), std::move(device)));
}

}  // namespace

Result<std::unique_ptr<Backend>> make_torch_cpu_backend(std::string_view) {
  return make("torch-cpu", false);
}

Result<std::unique_ptr<Backend>> make_torch_cuda_backend(std::string_view) {
  return make("torch-cuda", true);
}

}  // namespace kvsim::gpu
