// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/cublas_backend.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cublas_calls.h"
#include "gpu/operators.h"
#include "sim/decoder/codes.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

int cuda_type(const Format& format) {
  if (format == softfloat::bfloat16) return cuda_types::bfloat16;
  if (format == softfloat::binary16) return cuda_types::binary16;
  return cuda_types::binary32;
}

std::size_t bytes_of(const Format& format) { return static_cast<std::size_t>(format.width()) / 8; }

std::vector<std::byte> codes_of(const Tensor& tensor) {
  std::vector<std::byte> codes(tensor.values.size() * bytes_of(tensor.format));
  if (tensor.format == softfloat::binary32) {
    std::memcpy(codes.data(), tensor.values.data(), codes.size());
    return codes;
  }
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const std::uint16_t code = decoder::float_to_code(tensor.format, tensor.values[i]);
    std::memcpy(codes.data() + 2 * i, &code, sizeof code);
  }
  return codes;
}

void read_codes(const std::vector<std::byte>& codes, Tensor& tensor) {
  if (tensor.format == softfloat::binary32) {
    std::memcpy(tensor.values.data(), codes.data(), codes.size());
    return;
  }
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, codes.data() + 2 * i, sizeof code);
    tensor.values[i] = decoder::code_to_float(tensor.format, code);
  }
}

class CublasBackend final : public Backend {
 public:
  CublasBackend(bool light, CudaDevice device, CudaRuntime runtime,
                std::unique_ptr<CublasCalls> calls)
      : light_(light),
        device_(std::move(device)),
        runtime_(std::move(runtime)),
        calls_(std::move(calls)) {}

  [[nodiscard]] std::string name() const override { return light_ ? "cublaslt" : "cublas"; }
  [[nodiscard]] Fingerprint fingerprint() const override {
    Fingerprint fingerprint;
    fingerprint.entries.emplace_back(fingerprint_names::backend, name());
    fingerprint.entries.emplace_back(fingerprint_names::version, calls_->version());
    add_cuda_device(device_, fingerprint);
    return fingerprint;
  }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    const std::vector<std::string> formats = {"binary32", "bfloat16", "binary16"};
    const std::string note =
        light_ ? "attributes output, tf32, algorithm, workspace" : "attributes output, tf32";
    return {{"linear", formats, note + "; no bias"},
            {"gemm", formats, note},
            {"matmul", formats, note}};
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override;
  [[nodiscard]] Result<bool> set_threads(std::int64_t n) override {
    if (n >= 1) return true;  // nothing of the host's computes
    return Error{ErrorKind::usage, fmt::format("{} threads: 1 or more are accepted", n)};
  }

 private:
  [[nodiscard]] Result<CublasProduct> read_call(const OperatorCall& call,
                                                const Format& output) const;

  bool light_;
  CudaDevice device_;
  CudaRuntime runtime_;
  std::unique_ptr<CublasCalls> calls_;
};

/// The attribute as a whole number from 0 to `most`.
Result<std::int64_t> whole_attribute(const OperatorCall& call, std::string_view name,
                                     std::int64_t most) {
  const auto number = number_attribute(call, name, 0);
  if (!number) return number.error();
  if (!(*number >= 0 && *number <= static_cast<double>(most))) {
    return Error{ErrorKind::usage, fmt::format("{}: attribute {}={} is not 0 … {}", call.operation,
                                               name, *number, most)};
  }
  return static_cast<std::int64_t>(*number);
}

Result<CublasProduct> CublasBackend::read_call(const OperatorCall& call,
                                               const Format& output) const {
  if (call.inputs.size() > 2) {
    return Error{ErrorKind::usage, fmt::format("linear: {} adds no bias", name())};
  }
  CublasProduct product;
  product.b_by_columns = call.operation == "linear";
  const auto& a = call.inputs[0].shape;
  const auto& b = call.inputs[1].shape;
  for (const std::int64_t size : {a[0], a[1], b[0], b[1]}) {
    if (size > std::numeric_limits<int>::max()) {
      return Error{ErrorKind::usage, fmt::format("{}: {} takes sizes of 32 bits, and got {}",
                                                 call.operation, name(), size)};
    }
  }
  product.rows = static_cast<int>(a[0]);
  product.terms = static_cast<int>(a[1]);
  product.columns = static_cast<int>(product.b_by_columns ? b[0] : b[1]);
  product.input_type = cuda_type(call.inputs[0].format);
  product.output_type = cuda_type(output);
  const auto tf32 = flag_attribute(call, "tf32", false);
  if (!tf32) return tf32.error();
  product.tf32 = *tf32;
  const auto algorithm = whole_attribute(call, "algorithm", 63);
  if (!algorithm) return algorithm.error();
  product.algorithm = static_cast<int>(*algorithm);
  const auto workspace = whole_attribute(call, "workspace", std::int64_t{1} << 28);
  if (!workspace) return workspace.error();
  product.workspace = static_cast<std::size_t>(*workspace);
  return product;
}

Result<Tensor> CublasBackend::run(const OperatorCall& call) {
  static constexpr std::string_view attributes[] = {"output", "tf32", "algorithm", "workspace"};
  auto shape = check_call(name(), call, operators(), std::span(attributes).first(light_ ? 4 : 2));
  if (!shape) return shape.error();
  const Format input = call.inputs[0].format;
  const std::string output_name = text_attribute(call, "output", softfloat::format_name(input));
  const softfloat::NamedFormat* const output = softfloat::find_format(output_name);
  if (output == nullptr || (output->format != input && output->format != softfloat::binary32)) {
    return Error{ErrorKind::usage,
                 fmt::format("{}: attribute output={:.40} is neither binary32 nor "
                             "{}",
                             call.operation, output_name, softfloat::format_name(input))};
  }
  auto product = read_call(call, output->format);
  if (!product) return product.error();
  Tensor out = zero_tensor(output->format, std::move(*shape));
  std::vector<std::byte> out_codes(out.values.size() * bytes_of(out.format));
  const auto failed = [&](std::string_view what) {
    return Error{ErrorKind::file, fmt::format("{}: {}: {}", name(), call.operation, what)};
  };
  std::vector<CudaBuffer> buffers;
  buffers.reserve(3);
  for (const Tensor& tensor : call.inputs) {
    const std::vector<std::byte> codes = codes_of(tensor);
    const auto offset = static_cast<std::size_t>(tensor.misalignment);
    buffers.emplace_back(runtime_, codes.size() + offset);
    auto* const memory = static_cast<std::byte*>(buffers.back().get());
    if (memory == nullptr || !runtime_.to_device(memory + offset, codes.data(), codes.size())) {
      return failed("the inputs do not reach the device");
    }
  }
  buffers.emplace_back(runtime_, out_codes.size());
  if (buffers[2].get() == nullptr) return failed("no room for the result on the device");
  product->a = static_cast<std::byte*>(buffers[0].get()) + call.inputs[0].misalignment;
  product->b = static_cast<std::byte*>(buffers[1].get()) + call.inputs[1].misalignment;
  product->out = buffers[2].get();
  if (const auto done = calls_->multiply(runtime_, *product); !done) {
    return Error{done.error().kind,
                 fmt::format("{}: {}: {}", name(), call.operation, done.error().message)};
  }
  if (!runtime_.to_host(out_codes.data(), buffers[2].get(), out_codes.size())) {
    return failed("the result does not come back from the device");
  }
  read_codes(out_codes, out);
  return out;
}

Error missing(bool light, const Error& error) {
  return Error{error.kind, fmt::format("{}: {}; install CUDA 12 or 13 of NVIDIA so that the system "
                                       "finds its libraries",
                                       light ? "cublaslt" : "cublas", error.message)};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cublas_backend(const CudaLibraries& libraries, bool light) {
  const auto device = find_cuda_device(libraries);
  if (!device) {
    return Error{device.error().kind,
                 fmt::format("{}: {}", light ? "cublaslt" : "cublas", device.error().message)};
  }
  auto runtime = CudaRuntime::load(libraries);
  if (!runtime) return missing(light, runtime.error());
  auto calls = light ? load_cublaslt(libraries) : load_cublas(libraries);
  if (!calls) return missing(light, calls.error());
  return std::unique_ptr<Backend>(
      std::make_unique<CublasBackend>(light, *device, std::move(*runtime), std::move(*calls)));
}

Result<std::unique_ptr<Backend>> make_cublas_backend(std::string_view) {
  return make_cublas_backend(CudaLibraries{}, false);
}

Result<std::unique_ptr<Backend>> make_cublaslt_backend(std::string_view) {
  return make_cublas_backend(CudaLibraries{}, true);
}

}  // namespace kvsim::gpu
