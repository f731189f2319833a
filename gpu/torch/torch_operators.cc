// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <string_view>

#include "gpu/aligned_buffer.h"
#include "gpu/torch/torch_module.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

at::ScalarType scalar_type(const softfloat::Format& format) {
  if (format == softfloat::bfloat16) return at::kBFloat16;
  if (format == softfloat::binary16) return at::kHalf;
  return at::kFloat;
}

softfloat::Format format_of(at::ScalarType type) {
  if (type == at::kBFloat16) return softfloat::bfloat16;
  if (type == at::kHalf) return softfloat::binary16;
  return softfloat::binary32;
}

/// A tensor of PyTorch's over memory of ours: the address is under our control.
struct PlacedTensor {
  AlignedBuffer buffer;
  at::Tensor tensor;
};

/// The conversion is exact: the numbers are numbers of the format.
template <class Code>
void write_codes(std::byte* out, std::span<const float> values) {
  for (const float value : values) {
    const Code code(value);
    std::memcpy(out, &code, sizeof code);
    out += sizeof code;
  }
}

PlacedTensor place(const Tensor& tensor) {
  const at::ScalarType type = scalar_type(tensor.format);
  PlacedTensor placed{
      AlignedBuffer(tensor.values.size() * c10::elementSize(type), tensor.misalignment), {}};
  switch (type) {
    case at::kBFloat16:
      write_codes<c10::BFloat16>(placed.buffer.data(), tensor.values);
      break;
    case at::kHalf:
      write_codes<c10::Half>(placed.buffer.data(), tensor.values);
      break;
    default:
      write_codes<float>(placed.buffer.data(), tensor.values);
      break;
  }
  placed.tensor =
      at::from_blob(placed.buffer.data(), tensor.shape, at::TensorOptions().dtype(type));
  return placed;
}

Tensor take(const at::Tensor& result) {
  const at::Tensor numbers = result.to(at::kCPU).to(at::kFloat).contiguous();
  Tensor tensor{.format = format_of(result.scalar_type())};
  tensor.shape.assign(result.sizes().begin(), result.sizes().end());
  const float* const first = numbers.data_ptr<float>();
  tensor.values.assign(first, first + numbers.numel());
  return tensor;
}

using Inputs = std::vector<at::Tensor>;

std::optional<at::ScalarType> output_type(const TorchCall& call) {
  if (!call.output) return std::nullopt;
  return scalar_type(*call.output);
}

std::optional<at::Tensor> optional_input(const Inputs& inputs, std::size_t i) {
  if (i >= inputs.size()) return std::nullopt;
  return inputs[i];
}

/// huggingface/transformers 5.24, eager_attention_forward with its causal mask.
at::Tensor eager_attention(const TorchCall& call, const Inputs& inputs) {
  const at::Tensor query = inputs[0].unsqueeze(0);
  const std::int64_t groups = inputs[0].size(0) / inputs[1].size(0);
  const auto repeat = [&](const at::Tensor& kv) {
    if (groups == 1) return kv.unsqueeze(0);
    return kv.unsqueeze(1)
        .expand({kv.size(0), groups, kv.size(1), kv.size(2)})
        .reshape({1, kv.size(0) * groups, kv.size(1), kv.size(2)});
  };
  const double scale = call.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))));
  at::Tensor weights = at::matmul(query, repeat(inputs[1]).transpose(2, 3)) * scale;
  if (call.causal) {
    const at::Tensor unseen =
        at::ones({query.size(2), query.size(2)}, query.options().dtype(at::kBool)).triu(1);
    double lowest = std::numeric_limits<float>::lowest();
    if (query.scalar_type() == at::kHalf) lowest = std::numeric_limits<at::Half>::lowest();
    if (query.scalar_type() == at::kBFloat16) lowest = std::numeric_limits<at::BFloat16>::lowest();
    weights = weights + at::zeros_like(weights).masked_fill(unseen, lowest);
  }
  weights = at::softmax(weights, -1, at::kFloat).to(query.scalar_type());
  return at::matmul(weights, repeat(inputs[2])).squeeze(0);
}

at::Tensor attention(const TorchCall& call, const Inputs& inputs) {
  if (call.attention == TorchAttention::eager) return eager_attention(call, inputs);
  at::Context& context = at::globalContext();
  const bool flash = call.attention != TorchAttention::math;
  const bool math = call.attention != TorchAttention::flash;
  context.setSDPUseFlash(flash);
  context.setSDPUseMath(math);
  context.setSDPUseMemEfficient(flash && math);
  context.setSDPUseCuDNN(flash && math);
  const bool grouped = inputs[0].size(0) != inputs[1].size(0);
  const at::Tensor out = at::scaled_dot_product_attention(
      inputs[0].unsqueeze(0), inputs[1].unsqueeze(0), inputs[2].unsqueeze(0), std::nullopt, 0.0,
      call.causal, call.scale, grouped);
  return out.squeeze(0);
}

using Function = at::Tensor (*)(const TorchCall& call, const Inputs& inputs);

const std::map<std::string_view, Function>& functions() {
  static const std::map<std::string_view, Function> table = {
      {"linear", [](const TorchCall&,
                    const Inputs& in) { return at::linear(in[0], in[1], optional_input(in, 2)); }},
      {"matmul", [](const TorchCall&, const Inputs& in) { return at::matmul(in[0], in[1]); }},
      {"gemm", [](const TorchCall&, const Inputs& in) { return at::mm(in[0], in[1]); }},
      {"bmm", [](const TorchCall&, const Inputs& in) { return at::bmm(in[0], in[1]); }},
      {"dot", [](const TorchCall&, const Inputs& in) { return at::dot(in[0], in[1]); }},
      {"gemv", [](const TorchCall&, const Inputs& in) { return at::mv(in[0], in[1]); }},
      {"sum",
       [](const TorchCall& call, const Inputs& in) {
         return at::sum(in[0], at::IntArrayRef{-1}, false, output_type(call));
       }},
      {"mean",
       [](const TorchCall& call, const Inputs& in) {
         return at::mean(in[0], at::IntArrayRef{-1}, false, output_type(call));
       }},
      {"softmax", [](const TorchCall& call,
                     const Inputs& in) { return at::softmax(in[0], -1, output_type(call)); }},
      {"log-softmax",
       [](const TorchCall& call, const Inputs& in) {
         return at::log_softmax(in[0], -1, output_type(call));
       }},
      {"rms-norm",
       [](const TorchCall& call, const Inputs& in) {
         return at::rms_norm(in[0], in[0].size(-1), optional_input(in, 1), call.epsilon);
       }},
      {"layer-norm",
       [](const TorchCall& call, const Inputs& in) {
         return at::layer_norm(in[0], in[0].size(-1), optional_input(in, 1), optional_input(in, 2),
                               call.epsilon.value_or(1e-5));
       }},
      {"sdpa", attention},
      {"silu", [](const TorchCall&, const Inputs& in) { return at::silu(in[0]); }},
      {"gelu", [](const TorchCall&, const Inputs& in) { return at::gelu(in[0]); }},
      {"gelu-tanh", [](const TorchCall&, const Inputs& in) { return at::gelu(in[0], "tanh"); }},
      {"exp", [](const TorchCall&, const Inputs& in) { return at::exp(in[0]); }},
      {"rsqrt", [](const TorchCall&, const Inputs& in) { return at::rsqrt(in[0]); }},
      {"add", [](const TorchCall&, const Inputs& in) { return at::add(in[0], in[1]); }},
      {"mul", [](const TorchCall&, const Inputs& in) { return at::mul(in[0], in[1]); }},
  };
  return table;
}

/// The first line of what libtorch says.
std::string first_line(std::string text) {
  text.resize(std::min({text.size(), text.find('\n'), std::size_t{300}}));
  return text;
}

/// What cuBLAS may do with sums of 16-bit products.
std::string reduction(at::CuBLASReductionOption option) {
  switch (option) {
    case at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK:
      return "reduced precision and split-K";
    case at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK:
      return "split-K";
    default:
      return "neither";
  }
}

/// Makes the CUDA part of libtorch known to it. Empty, or a line that says what is wrong.
std::string load_cuda() {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const char* const said = dlerror();
    return "libtorch_cuda cannot be loaded: " + first_line(said == nullptr ? "" : said);
  }
  return at::hasCUDA() ? "" : "no GPU: libtorch_cuda sees none";
}

class LibTorch final : public TorchModule {
 public:
  explicit LibTorch(const TorchOptions& options) : options_(options) {}

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> describe() const override {
    const at::Context& context = at::globalContext();
    std::vector<std::pair<std::string, std::string>> entries = {
        {"version", "torch " TORCH_VERSION},
        {"core", at::get_cpu_capability()},
        {"mkl", first_line(at::get_mkl_version())},
        {"onednn", first_line(at::get_mkldnn_version())},
        {"onednn-enabled", context.userEnabledMkldnn() ? "1" : "0"},
        {"threads", std::to_string(at::get_num_threads())}};
    if (options_.cuda) {
      entries.emplace_back("tf32", context.allowTF32CuBLAS() ? "1" : "0");
      entries.emplace_back("bfloat16-reduction", reduction(context.allowBF16ReductionCuBLAS()));
      entries.emplace_back("binary16-reduction", reduction(context.allowFP16ReductionCuBLAS()));
    }
    return entries;
  }

  [[nodiscard]] Result<Tensor> run(const TorchCall& call) override {
    const auto function = functions().find(call.call.operation);
    if (function == functions().end()) {
      return Error{ErrorKind::unavailable, "libtorch: no operator " + call.call.operation};
    }
    try {
      const c10::InferenceMode inference;
      at::globalContext().setUserEnabledMkldnn(options_.onednn);
      std::vector<PlacedTensor> placed;
      Inputs inputs;
      for (const Tensor& tensor : call.call.inputs) {
        placed.push_back(place(tensor));
        inputs.push_back(options_.cuda ? placed.back().tensor.to(at::kCUDA) : placed.back().tensor);
      }
      return take(function->second(call, inputs));
    } catch (const c10::Error& error) {
      return Error{ErrorKind::usage, call.call.operation + ": libtorch says: " +
                                         first_line(error.what_without_backtrace())};
    } catch (const std::exception& error) {
      return Error{ErrorKind::file,
                   call.call.operation + ": libtorch says: " + first_line(error.what())};
    }
  }

  void set_threads(std::int64_t n) override { at::set_num_threads(static_cast<int>(n)); }

 private:
  TorchOptions options_;
};

}  // namespace
}  // namespace kvsim::gpu

extern "C" __attribute__((visibility("default"))) kvsim::gpu::TorchModule* kvsim_make_torch_module(
    const kvsim::gpu::TorchOptions& options, std::string* error) {
  try {
    at::globalContext().setUserEnabledMkldnn(options.onednn);
    at::set_num_threads(1);
    if (options.cuda) *error = kvsim::gpu::load_cuda();
    if (!error->empty()) return nullptr;
    return std::make_unique<kvsim::gpu::LibTorch>(options).release();
  } catch (const std::exception& exception) {
    *error = kvsim::gpu::first_line(exception.what());
    return nullptr;
  }
}
