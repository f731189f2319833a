// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>
#include <limits>

#include "sim/devices.h"
#include "sim/dispatch.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Evidence;

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// One row: a kernel for vectors. Up to 64 rows, one tile high: K is split to fill the device.
#define KVSIM_LINEAR_CHOICES(device) \
  std::to_array<LinearChoice>(       \
      {{{1, 1}, device "-gemv"}, {{2, 64}, device "-splitk"}, {{65, unlimited}, device "-gemm"}})
constexpr auto v100_linear = KVSIM_LINEAR_CHOICES("v100");
constexpr auto a100_linear = KVSIM_LINEAR_CHOICES("a100");
constexpr auto h100_linear = KVSIM_LINEAR_CHOICES("h100");
constexpr auto b200_linear = KVSIM_LINEAR_CHOICES("b200");
constexpr auto mi300_linear = KVSIM_LINEAR_CHOICES("mi300");
#undef KVSIM_LINEAR_CHOICES
constexpr auto cpu_linear = std::to_array<LinearChoice>({{{1, unlimited}, "torch-cpu-linear"}});
constexpr auto avx2_linear =
    std::to_array<LinearChoice>({{{1, unlimited}, "torch-cpu-avx2-linear"}});
constexpr auto invariant_linear =
    std::to_array<LinearChoice>({{{1, unlimited}, "h100-batch-invariant"}});

constexpr auto llama_linear =
    std::to_array<LinearChoice>({{{1, unlimited}, "llama.cpp-cpu-linear"}});
constexpr auto exact_linear =
    std::to_array<LinearChoice>({{{1, unlimited}, "control-linear-exact"}});

constexpr std::string_view assumed_linear =
    "attention: the device's usual kernel; linear rows are CUTLASS-style and assumed, as is the "
    "choice among them by the number of rows";

constexpr Dispatch gpu(std::string_view name, std::string_view description,
                       const devices::Device& device, std::span<const LinearChoice> linear,
                       std::string_view attention) {
  return {.name = name,
          .description = description,
          .multiprocessors = device.multiprocessors,
          .linear = linear,
          .attention_prefill = attention,
          .attention_decode = attention,
          .norm = "gpu-rms",
          .norm_plus_one = "gpu-rms-gemma",
          .softmax = "gpu-softmax",
          .log_softmax = "gpu-log-softmax",
          .rope = "gpu-rope",
          .silu = "gpu-silu",
          .gelu = "gpu-gelu",
          .gelu_tanh = "gpu-gelu-tanh",
          .residual = "storage-residual",
          .source = assumed_linear};
}

constexpr Dispatch batch_invariant() {
  Dispatch row = gpu("batch-invariant",
                     "NVIDIA H100 with batch-invariant kernels: no split of K or of the keys",
                     devices::h100, invariant_linear, "h100-fa2");
  row.prefill_splits = 1;
  row.decode_splits = 1;
  row.norm = "batch-invariant-rms";
  row.log_softmax = "batch-invariant-log-softmax";
  row.source =
      "thinking-machines-lab/batch_invariant_ops (read 2026-08) for linear layers, norm and "
      "log-softmax; attention: FlashAttention-2 with num_splits = 1, because FlashAttention-3 "
      "changes its tiles with the number of queries (vllm-project/vllm issue 51902)";
  row.evidence = Evidence::inferred;
  return row;
}

constexpr Dispatch batch_invariant_fp32() {
  Dispatch row = batch_invariant();
  row.name = "batch-invariant-fp32";
  row.description = "NVIDIA H100 with batch-invariant kernels, float32 throughout, without TF32";
  row.attention_prefill = "h100-eager";
  row.attention_decode = "h100-eager";
  row.prefill_splits = 0;
  row.decode_splits = 0;
  row.formats.activations = softfloat::binary32;
  row.source =
      "thinking-machines-lab/batch_invariant_ops (read 2026-08): 128×128×32 tiles in f32, no "
      "split-K, for linear layers; norm and log-softmax as batch-invariant. FlashAttention takes "
      "no float32, so attention is written out, one chain over all keys; that products avoid TF32 "
      "is assumed";
  row.evidence = Evidence::assumed;
  return row;
}

constexpr Dispatch cpu() {
  return {.name = "cpu",
          .other_name = "torch-cpu",
          .description = "PyTorch 2.11 on a CPU with AVX-512, one thread",
          .linear = cpu_linear,
          .attention_prefill = "torch-cpu",
          .attention_decode = "torch-cpu",
          .norm = "torch-cpu-rms",
          .norm_plus_one = "torch-cpu-rms-gemma",
          .softmax = "torch-cpu-softmax",
          .log_softmax = "torch-cpu-log-softmax",
          .rope = "transformers-rope",
          .silu = "torch-cpu-silu",
          .gelu = "torch-cpu-gelu",
          .gelu_tanh = "torch-cpu-gelu-tanh",
          .residual = "storage-residual",
          .source = "PyTorch 2.11.0 from PyPI, AMD Zen 4: revealed and replayed, 2026",
          .evidence = Evidence::measured};
}

/// The setting that is meant to give the same bits on every CPU with AVX2.
constexpr Dispatch cpu_avx2() {
  Dispatch row = cpu();
  row.name = "cpu-avx2";
  row.other_name = "torch-cpu-avx2";
  row.description = "PyTorch 2.11 on a CPU held to AVX2, oneDNN disabled, one thread";
  row.linear = avx2_linear;
  row.attention_prefill = "torch-cpu-avx2";
  row.attention_decode = "torch-cpu-avx2";
  row.softmax = "torch-cpu-avx2-softmax";
  row.log_softmax = "torch-cpu-avx2-log-softmax";
  row.silu = "torch-cpu-avx2-silu";
  row.source =
      "PyTorch 2.11.0 from PyPI with MKL_CBWR=AVX2, ATEN_CPU_CAPABILITY=avx2 and oneDNN disabled, "
      "AMD Zen 4: revealed and replayed, 2026-11 (docs/torch-cpu.md)";
  return row;
}

constexpr Dispatch exact_sums() {
  Dispatch row =
      gpu("exact-sums", "exact sums in linear layers and norms, attention exact but for its result",
          devices::any, exact_linear, {});
  row.multiprocessors = 1;
  row.arithmetic = DispatchArithmetic::exact;
  row.source = "control";
  row.evidence = Evidence::documented;
  return row;
}

/// Nothing but storage rounds: what is left of a difference comes from elsewhere.
constexpr Dispatch exact() {
  return {.name = "exact",
          .description = "eager attention, exact accumulators, correctly rounded exponential",
          .linear = exact_linear,
          .attention_prefill = "control-attention-exact",
          .attention_decode = "control-attention-exact",
          .norm = "control-rms-exact",
          .norm_plus_one = "control-rms-exact-gemma",
          .softmax = "control-softmax",
          .log_softmax = "control-log-softmax",
          .rope = "control-rope",
          .silu = "control-silu",
          .gelu = "control-gelu",
          .gelu_tanh = "control-gelu-tanh",
          .residual = "storage-residual",
          .source = "control",
          .evidence = Evidence::documented};
}

constexpr std::string_view fp32_source =
    "PyTorch on a GPU with float32 tensors and allow_tf32 = False: products on CUDA cores, as the "
    "linear rows say, and attention written out; kernels assumed";

constexpr Dispatch fp32() {
  Dispatch row = gpu("fp32", "NVIDIA H100, float32 throughout, without TF32", devices::h100,
                     h100_linear, "h100-eager");
  row.formats.activations = softfloat::binary32;
  row.source = fp32_source;
  return row;
}

constexpr Dispatch layercast() {
  Dispatch row = fp32();
  row.name = "layercast";
  row.description = "weights kept in bfloat16, each converted to float32 when its layer computes";
  row.formats.weights = softfloat::bfloat16;
  row.source =
      "LayerCast (arXiv:2506.09501, nanomaoli/llm_reproducibility): 16-bit weights, float32 "
      "compute; kernels as fp32";
  row.evidence = Evidence::inferred;
  return row;
}

constexpr Dispatch llama_cpp() {
  return {.name = "llama.cpp-cpu",
          .description = "llama.cpp on a CPU with AVX-512, one thread, binary16 weights and cache",
          .linear = llama_linear,
          .attention_prefill = "llama.cpp-cpu",
          .attention_decode = "llama.cpp-cpu",
          .norm = "llama.cpp-cpu-rms",
          .norm_plus_one = "llama.cpp-cpu-rms-gemma",
          .softmax = "control-softmax",
          .log_softmax = "control-log-softmax",
          .rope = "ggml-rope",
          .silu = "control-silu",
          .gelu = "control-gelu",
          .gelu_tanh = "control-gelu-tanh",
          .residual = "storage-residual",
          .formats = {.weights = softfloat::binary16,
                      .operands = softfloat::binary16,
                      .activations = softfloat::binary32,
                      .kv = softfloat::binary16,
                      .logits = softfloat::binary32},
          .source =
              "ggml-org/llama.cpp, ggml/src/ggml-cpu/ops.cpp and vec.cpp (2026-08): float32 "
              "activations, converted to the type of the weights before a dot product; that "
              "every row of a matrix product is one such dot product is assumed",
          .evidence = Evidence::inferred};
}

constexpr Dispatch binary64() {
  return {.name = "binary64",
          .description = "binary64 throughout, nothing rounded to storage",
          .arithmetic = DispatchArithmetic::binary64,
          .source = "control",
          .evidence = Evidence::documented};
}

/// A row that people also know by the name of its attention kernel.
constexpr Dispatch also(Dispatch row, std::string_view other_name) {
  row.other_name = other_name;
  return row;
}

constexpr auto dispatch_rows = std::to_array<Dispatch>({
    also(gpu("h100", "NVIDIA H100 SXM", devices::h100, h100_linear, "h100-fa3"), "h100-fa3"),
    also(gpu("a100", "NVIDIA A100", devices::a100, a100_linear, "a100-fa2"), "a100-fa2"),
    gpu("v100", "NVIDIA V100", devices::v100, v100_linear, "v100-eager"),
    also(gpu("b200", "NVIDIA B200", devices::b200, b200_linear, "b200-fa4"), "b200-fa4"),
    also(gpu("mi300", "AMD MI300X", devices::mi300, mi300_linear, "mi300-fa2"), "mi300-fa2"),
    cpu(),
    cpu_avx2(),
    llama_cpp(),
    batch_invariant(),
    batch_invariant_fp32(),
    fp32(),
    layercast(),
    exact(),
    exact_sums(),
    binary64(),
});

}  // namespace

std::span<const Dispatch> dispatches() { return dispatch_rows; }

}  // namespace kvsim
