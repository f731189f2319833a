// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>

#include "sim/devices.h"
#include "sim/linear.h"
#include "sim/linear_rules_torch_cpu.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::e4m3;
using softfloat::e4m3fnuz;
using softfloat::Evidence;
using softfloat::Format;
using namespace linear_rules;  // NOLINT: the rows of this one table

constexpr LinearRule to_output(LinearRule row, const Format& output) {
  row.output = output;
  return row;
}

// The main loop of a GPU's matrix product: one chain of matrix instructions in increasing K. The
// tile sizes do not show in the bits, as long as K is not split.
constexpr std::string_view simt = "CUDA cores: one fused multiply-add per term, in increasing K";
constexpr auto v100_rules = std::to_array<LinearRule>({
    rule(binary16, "mma(v100.mma.f16.f32)", Evidence::inferred),
    rule(binary32, "sequential", Evidence::assumed, simt),
});
constexpr auto a100_rules = std::to_array<LinearRule>({
    rule(binary16, "mma(a100.mma.f16.f32)", Evidence::inferred),
    rule(bfloat16, "mma(a100.mma.bf16.f32)", Evidence::inferred),
    rule(binary32, "sequential", Evidence::assumed, simt),
});
constexpr auto h100_rules = std::to_array<LinearRule>({
    rule(binary16, "mma(h100.wgmma.f16.f32)", Evidence::inferred),
    rule(bfloat16, "mma(h100.wgmma.bf16.f32)", Evidence::inferred),
    rule(binary32, "sequential", Evidence::assumed, simt),
});
constexpr auto b200_rules = std::to_array<LinearRule>({
    rule(binary16, "mma(b200.tcgen05.f16.f32)", Evidence::inferred),
    rule(bfloat16, "mma(b200.tcgen05.bf16.f32)", Evidence::inferred),
    rule(binary32, "sequential", Evidence::assumed, simt),
});
constexpr auto mi300_rules = std::to_array<LinearRule>({
    rule(binary16, "mma(mi300.mfma.f16.f32)", Evidence::inferred),
    rule(bfloat16, "mma(mi300.mfma.bf16.f32)", Evidence::inferred),
    rule(binary32, "mma(mi300.mfma.f32.f32)", Evidence::inferred),
});

constexpr LinearRule half_sums(std::string_view order) {
  LinearRule row = rule(binary16, order, Evidence::inferred);
  row.accumulator = binary16;
  return row;
}
constexpr auto a100_half_rules = std::to_array<LinearRule>({half_sums("mma(a100.mma.f16.f16)")});
constexpr auto h100_half_rules = std::to_array<LinearRule>({half_sums("mma(h100.wgmma.f16.f16)")});
constexpr auto a100_tf32_rules = std::to_array<LinearRule>({
    rule(binary32, "mma(a100.mma.tf32.f32)", Evidence::inferred),
});
constexpr auto h100_tf32_rules = std::to_array<LinearRule>({
    rule(binary32, "mma(h100.wgmma.tf32.f32)", Evidence::inferred),
});

// One warp for an output: each lane sums every 32nd product, then the lanes join by exchanging with
// the lane 16, 8, 4, 2 and 1 away. On MI300 a wavefront has 64 lanes.
constexpr auto warp_rules = std::to_array<LinearRule>({
    rule(binary16, "lanes(32,1,join=butterfly)", Evidence::assumed),
    rule(bfloat16, "lanes(32,1,join=butterfly)", Evidence::assumed),
    rule(binary32, "lanes(32,1,join=butterfly)", Evidence::assumed),
});
constexpr auto wavefront_rules = std::to_array<LinearRule>({
    rule(binary16, "lanes(64,1,join=butterfly)", Evidence::assumed),
    rule(bfloat16, "lanes(64,1,join=butterfly)", Evidence::assumed),
    rule(binary32, "lanes(64,1,join=butterfly)", Evidence::assumed),
});

constexpr auto h100_fp8_rules = std::to_array<LinearRule>({
    to_output(rule(e4m3, "mma(h100.wgmma.e4m3.f32)", Evidence::inferred), bfloat16),
});
constexpr auto h100_fp8_promoted_rules = std::to_array<LinearRule>({
    to_output(rule(e4m3, "blocks(128)/mma(h100.wgmma.e4m3.f32)", Evidence::inferred,
                   "scales of tensors and blocks are powers of two here: they change no bit"),
              bfloat16),
});
constexpr auto b200_fp8_rules = std::to_array<LinearRule>({
    to_output(rule(e4m3, "mma(b200.tcgen05.e4m3.f32)", Evidence::inferred), bfloat16),
});
constexpr auto mi300_fp8_rules = std::to_array<LinearRule>({
    to_output(rule(e4m3fnuz, "mma(mi300.mfma.e4m3fnuz.f32)", Evidence::inferred), bfloat16),
});

// ggml's dot products with AVX-512: 4 accumulators of 16 lanes, for bfloat16 without its own
// instructions 2, joined by halves; then the register is.
constexpr LinearRule bf16_dot() {
  LinearRule row = rule(bfloat16, "lanes(32,1,join=halving,tail=scalar)", Evidence::inferred);
  row.product = Product::rounded;
  return row;
}
constexpr auto llama_rules = std::to_array<LinearRule>({
    rule(binary16, "lanes(64,1,join=halving,tail=scalar)", Evidence::inferred),
    bf16_dot(),
    rule(binary32, "lanes(64,1,join=halving,tail=scalar)", Evidence::inferred),
});

constexpr auto plain_rules = std::to_array<LinearRule>({
    rule(binary32, "sequential", Evidence::documented),
    rule(binary16, "sequential", Evidence::documented),
    rule(bfloat16, "sequential", Evidence::documented),
    rule(e4m3, "sequential", Evidence::documented),
});
constexpr auto exact_rules = std::to_array<LinearRule>({
    rule(binary32, "exact", Evidence::documented),
    rule(binary16, "exact", Evidence::documented),
    rule(bfloat16, "exact", Evidence::documented),
    rule(e4m3, "exact", Evidence::documented),
});

constexpr std::string_view cutlass =
    "NVIDIA/cutlass 7107b0553: serial main loop over K tiles; parallel split-K adds partial sums "
    "0, 1, … in the accumulator's type; serial split-K rounds to the output's type each time. "
    "Which kernel a library picks for a shape is not published";
constexpr std::string_view unpublished =
    "cuBLAS publishes neither its kernels for one row nor their order: one warp for an output is "
    "the common form";
constexpr std::string_view persistent =
    "thinking-machines-lab/batch_invariant_ops (read 2026-08): persistent matrix product, "
    "128×128×64 tiles in bf16, 128×256×64 in f16, 128×128×32 in f32, no split-K";
constexpr std::string_view amd =
    "matrix products of AMD GPUs: a serial main loop over K tiles is assumed; hipBLASLt publishes "
    "no order";
constexpr std::string_view ggml =
    "ggml-org/llama.cpp, ggml/src/ggml-cpu/vec.cpp, ggml_vec_dot_f16, _bf16 and _f32 with AVX-512 "
    "(2026-08); llamafile's tiles for several rows are not modelled";

constexpr std::string_view rounded_partials =
    "cuBLASLt documentation: reduction scheme OUTPUT_TYPE rounds the partial sums of a split-K; "
    "what PyTorch's allow_fp16_reduced_precision_reduction permits";
constexpr std::string_view tf32 =
    "matrix products of float32 on tensor cores: PyTorch's allow_tf32; operands are truncated by "
    "the instruction";

/// One chain over all of K.
constexpr LinearKernel gemm(std::string_view name, const devices::Device& device,
                            std::span<const LinearRule> rules, std::string_view source = cutlass) {
  LinearKernel row;
  row.name = name;
  row.device = device.device_class;
  row.multiprocessors = device.multiprocessors;
  row.rules = rules;
  row.source = source;
  return row;
}

/// The same, with K split so that the multiprocessors are busy.
constexpr LinearKernel split_gemm(std::string_view name, const devices::Device& device,
                                  std::span<const LinearRule> rules, SplitReduction reduction,
                                  std::string_view source = cutlass) {
  LinearKernel row = gemm(name, device, rules, source);
  row.tile_rows = 64;
  row.tile_outputs = 64;
  row.split = {SplitKind::waves, 16, 4, reduction};
  return row;
}

constexpr LinearKernel batch_invariant(std::string_view name, const devices::Device& device,
                                       std::span<const LinearRule> rules) {
  LinearKernel row = gemm(name, device, rules, persistent);
  row.evidence = Evidence::inferred;
  return row;
}

constexpr LinearKernel with_evidence(LinearKernel row, Evidence evidence) {
  row.evidence = evidence;
  return row;
}

constexpr auto kernels = std::to_array<LinearKernel>({
    gemm("v100-gemm", devices::v100, v100_rules),
    split_gemm("v100-splitk", devices::v100, v100_rules, SplitReduction::parallel),
    split_gemm("v100-splitk-serial", devices::v100, v100_rules, SplitReduction::serial),
    gemm("v100-gemv", devices::v100, warp_rules, unpublished),
    gemm("a100-gemm", devices::a100, a100_rules),
    split_gemm("a100-splitk", devices::a100, a100_rules, SplitReduction::parallel),
    split_gemm("a100-splitk-serial", devices::a100, a100_rules, SplitReduction::serial),
    split_gemm("a100-splitk-rounded", devices::a100, a100_rules, SplitReduction::rounded,
               rounded_partials),
    gemm("a100-gemv", devices::a100, warp_rules, unpublished),
    gemm("a100-gemm-tf32", devices::a100, a100_tf32_rules, tf32),
    gemm("a100-gemm-f16-sums", devices::a100, a100_half_rules),
    batch_invariant("a100-batch-invariant", devices::a100, a100_rules),
    gemm("h100-gemm", devices::h100, h100_rules),
    split_gemm("h100-splitk", devices::h100, h100_rules, SplitReduction::parallel),
    split_gemm("h100-splitk-serial", devices::h100, h100_rules, SplitReduction::serial),
    split_gemm("h100-splitk-rounded", devices::h100, h100_rules, SplitReduction::rounded,
               rounded_partials),
    gemm("h100-gemv", devices::h100, warp_rules, unpublished),
    gemm("h100-gemm-tf32", devices::h100, h100_tf32_rules, tf32),
    gemm("h100-gemm-f16-sums", devices::h100, h100_half_rules),
    batch_invariant("h100-batch-invariant", devices::h100, h100_rules),
    gemm("h100-fp8", devices::h100, h100_fp8_rules),
    gemm("h100-fp8-promoted", devices::h100, h100_fp8_promoted_rules,
         "DeepSeek-V3 technical report (arXiv:2412.19437), section 3.3.2: partial sums of the "
         "tensor cores are added in FP32 every 128 terms; as DeepGEMM does"),
    gemm("b200-gemm", devices::b200, b200_rules),
    split_gemm("b200-splitk", devices::b200, b200_rules, SplitReduction::parallel),
    split_gemm("b200-splitk-serial", devices::b200, b200_rules, SplitReduction::serial),
    gemm("b200-gemv", devices::b200, warp_rules, unpublished),
    batch_invariant("b200-batch-invariant", devices::b200, b200_rules),
    gemm("b200-fp8", devices::b200, b200_fp8_rules),
    gemm("mi300-gemm", devices::mi300, mi300_rules, amd),
    split_gemm("mi300-splitk", devices::mi300, mi300_rules, SplitReduction::parallel, amd),
    gemm("mi300-gemv", devices::mi300, wavefront_rules, amd),
    gemm("mi300-fp8", devices::mi300, mi300_fp8_rules, amd),
    with_evidence(gemm("torch-cpu-linear", devices::cpu, torch_rules, torch), Evidence::measured),
    with_evidence(gemm("torch-cpu-flash-scores", devices::cpu, torch_flash_rules, torch),
                  Evidence::inferred),
    with_evidence(gemm("torch-cpu-scores", devices::cpu, torch_score_rules, torch),
                  Evidence::measured),
    with_evidence(gemm("torch-cpu-values", devices::cpu, torch_value_rules, torch),
                  Evidence::measured),
    with_evidence(gemm("torch-cpu-avx2-linear", devices::cpu, torch_avx2_rules, torch_avx2),
                  Evidence::measured),
    with_evidence(gemm("torch-cpu-avx2-scores", devices::cpu, torch_avx2_score_rules, torch_avx2),
                  Evidence::measured),
    with_evidence(gemm("torch-cpu-avx2-values", devices::cpu, torch_avx2_value_rules, torch_avx2),
                  Evidence::measured),
    with_evidence(
        gemm("torch-cpu-avx2-flash-scores", devices::cpu, torch_avx2_flash_rules, torch_avx2),
        Evidence::measured),
    with_evidence(gemm("llama.cpp-cpu-linear", devices::cpu, llama_rules, ggml),
                  Evidence::inferred),
    with_evidence(gemm("control-linear", devices::any, plain_rules,
                       "control: one fused multiply-add per term in binary32"),
                  Evidence::documented),
    with_evidence(gemm("control-linear-exact", devices::any, exact_rules,
                       "control: the exact sum rounded once to binary32"),
                  Evidence::documented),
});

}  // namespace

std::span<const LinearKernel> linear_kernels() { return kernels; }

}  // namespace kvsim
