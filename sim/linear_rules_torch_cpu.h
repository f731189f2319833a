// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <string_view>

#include "sim/linear.h"
#include "softfloat/formats.h"

/// The rules of PyTorch's products on a CPU, for linear_rows.cc: docs/torch-cpu.md.
namespace kvsim::linear_rules {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::Evidence;
using softfloat::Format;

/// A rule that holds for every size.
constexpr LinearRule rule(const Format& storage, std::string_view order, Evidence evidence,
                          std::string_view note = {}) {
  LinearRule row;
  row.storage = storage;
  row.order = order;
  row.evidence = evidence;
  row.note = note;
  return row;
}

/// Rules of PyTorch on a CPU, for ranges of sizes. The first one that fits holds.
constexpr LinearRule few_rows(SizeRange rows, SizeRange outputs) {
  LinearRule row =
      rule(binary32, "lanes(4,1,join=halving,tail=scalar)", Evidence::measured,
           "for K a multiple of 4 and N above 1: otherwise the addresses of rows count");
  row.rows = rows;
  row.outputs = outputs;
  row.product = Product::rounded;
  row.edge_order = "lanes(8,1,join=halving,tail=scalar)";
  row.edge_outputs = 4;
  return row;
}
constexpr LinearRule one_row() {
  LinearRule row = few_rows({1, 1}, {});
  row.leading_modulus = 4;
  row.second_edge_order = "lanes(4,1,join=halving,tail=scalar,multiple=8)";
  row.note = "weights at a multiple of 16 bytes, as safetensors files have them";
  return row;
}
constexpr LinearRule half_blocks() {
  LinearRule row = rule(binary32, "blocks(K/2)", Evidence::measured);
  row.terms = {193, 383};
  return row;
}
constexpr LinearRule small_product(const Format& storage) {
  LinearRule row = rule(storage, "torch-dot(8)", Evidence::measured);
  row.multiply_adds = {1, 4096};
  return row;
}
constexpr LinearRule bf16_blocks(SizeRange rows, SizeRange terms, std::string_view order) {
  LinearRule row = rule(bfloat16, order, Evidence::measured);
  row.rows = rows;
  row.terms = terms;
  return row;
}
constexpr LinearRule unknown_half(std::string_view order) {
  return rule(binary16, order, Evidence::assumed,
              "float16 was not tried: as float32, rounded once");
}
/// The result starts from the bias.
constexpr LinearRule from_bias(LinearRule row) {
  row.starts_from_bias = true;
  return row;
}

// With MKL_CBWR=AVX2 no address counts: one product goes before the others.
constexpr LinearRule aligned_row() {
  LinearRule row = one_row();
  row.leading_modulus = 1;
  row.note = {};
  return row;
}
constexpr LinearRule one_output(LinearRule row) {
  row.rows = {};
  row.outputs = {1, 1};
  row.exchanged = true;
  return row;
}
constexpr LinearRule any_terms(LinearRule row) {
  row.note = {};
  return row;
}
inline constexpr auto torch_avx2_rules = std::to_array<LinearRule>({
    rule(bfloat16, "torch-dot(8)", Evidence::measured),
    aligned_row(),
    one_output(aligned_row()),
    any_terms(few_rows({2, 3}, {})),
    any_terms(few_rows({}, {1, 11})),
    from_bias(half_blocks()),
    from_bias(rule(binary32, "blocks(192)", Evidence::measured)),
    unknown_half("blocks(192)"),
});

// Matrix products of attention. Up to 399 multiply-adds run in a plain loop; beyond, MKL's binary32
// and, for 16-bit scores of flash attention, its product with binary32 results.
constexpr LinearRule plain_loop(const Format& storage) {
  LinearRule row = rule(storage, "sequential(init=zero)", Evidence::measured);
  row.multiply_adds = {1, 399};
  row.product = Product::rounded;
  return row;
}
constexpr LinearRule one_by_one(SizeRange rows, SizeRange outputs) {
  LinearRule row = rule(binary32, "sequential", Evidence::measured);
  row.rows = rows;
  row.outputs = outputs;
  row.product = Product::rounded;
  return row;
}
inline constexpr auto torch_avx2_score_rules = std::to_array<LinearRule>({
    plain_loop(bfloat16),
    rule(bfloat16, "torch-dot(8)", Evidence::measured),
    plain_loop(binary32),
    aligned_row(),
    any_terms(few_rows({2, 3}, {})),
    any_terms(few_rows({}, {1, 11})),
    half_blocks(),
    rule(binary32, "blocks(192)", Evidence::measured),
});
inline constexpr auto torch_avx2_value_rules = std::to_array<LinearRule>({
    plain_loop(bfloat16),
    rule(bfloat16, "lanes(4,1,join=sequential,tail=first-lane,init=zero)", Evidence::measured),
    plain_loop(binary32),
    one_by_one({1, 3}, {}),
    one_by_one({}, {1, 11}),
    half_blocks(),
    rule(binary32, "blocks(192)", Evidence::measured),
});
constexpr LinearRule mkl_bf16(LinearRule row) {
  row.storage = bfloat16;
  row.output = binary32;
  row.note = {};
  return row;
}
constexpr LinearRule mkl_bf16_vector(SizeRange rows, SizeRange outputs) {
  LinearRule row =
      mkl_bf16(rule(bfloat16, "lanes(4,1,join=halving,tail=scalar)", Evidence::measured));
  row.rows = rows;
  row.outputs = outputs;
  return row;
}
// MKL's product of binary16 factors with binary32 results, under every setting that was tried:
// products of 11-bit numbers are exact in binary32, so that only the order counts.
constexpr LinearRule mkl_half(LinearRule row) {
  row.storage = binary16;
  row.output = binary32;
  row.note = {};
  return row;
}
#define KVSIM_HALF_FLASH_SCORES                                                             \
  mkl_half(few_rows({1, 3}, {})), mkl_half(few_rows({}, {1, 11})), mkl_half(half_blocks()), \
      mkl_half(rule(binary16, "blocks(192)", Evidence::measured))
inline constexpr auto torch_avx2_flash_rules = std::to_array<LinearRule>({
    mkl_bf16_vector({1, 1}, {}),
    mkl_bf16_vector({}, {1, 1}),
    mkl_bf16(few_rows({2, 3}, {})),
    mkl_bf16(few_rows({}, {1, 11})),
    mkl_bf16(half_blocks()),
    mkl_bf16(rule(binary32, "blocks(192)", Evidence::measured)),
    aligned_row(),
    one_output(aligned_row()),
    any_terms(few_rows({2, 3}, {})),
    any_terms(few_rows({}, {1, 11})),
    half_blocks(),
    rule(binary32, "blocks(192)", Evidence::measured),
    KVSIM_HALF_FLASH_SCORES,
});

// Scores of flash attention as installed: bfloat16 as binary32.
constexpr LinearRule flash_lanes(const Format& storage, SizeRange rows, SizeRange outputs) {
  LinearRule row = rule(storage, "lanes(4,1,join=butterfly)", Evidence::inferred);
  row.rows = rows;
  row.outputs = outputs;
  row.product = Product::rounded;
  row.output = binary32;
  return row;
}
constexpr LinearRule flash_blocks(const Format& storage, SizeRange terms, std::string_view order) {
  LinearRule row = rule(storage, order, Evidence::inferred);
  row.terms = terms;
  row.output = binary32;
  return row;
}
#define KVSIM_FLASH_SCORES(storage)                                    \
  flash_lanes(storage, {1, 3}, {}), flash_lanes(storage, {}, {1, 11}), \
      flash_blocks(storage, {193, 383}, "blocks(K/2)"), flash_blocks(storage, {}, "blocks(192)")
inline constexpr auto torch_flash_rules = std::to_array<LinearRule>(
    {KVSIM_FLASH_SCORES(binary32), KVSIM_FLASH_SCORES(bfloat16), KVSIM_HALF_FLASH_SCORES});
#undef KVSIM_FLASH_SCORES
#undef KVSIM_HALF_FLASH_SCORES

inline constexpr auto torch_rules = std::to_array<LinearRule>({
    small_product(bfloat16),
    bf16_blocks({1, 1}, {}, "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)"),
    bf16_blocks({}, {1, 1024}, "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)"),
    bf16_blocks({}, {}, "blocks(1024)/mma(x86.vdpbf16ps.bf16.f32)"),
    one_row(),
    one_output(one_row()),
    few_rows({2, 3}, {}),
    few_rows({}, {1, 11}),
    from_bias(half_blocks()),
    from_bias(rule(binary32, "blocks(192)", Evidence::measured)),
    unknown_half("blocks(192)"),
});

// Products of eager attention as installed: MKL's for binary32; for bfloat16 oneDNN's, but below
// 4,097 multiply-adds of all heads those of the pinned setting.
constexpr LinearRule small_batch(LinearRule row) {
  row.batch_multiply_adds = {1, 4096};
  return row;
}
inline constexpr auto torch_score_rules = std::to_array<LinearRule>({
    small_batch(plain_loop(bfloat16)),
    small_batch(rule(bfloat16, "torch-dot(8)", Evidence::measured)),
    bf16_blocks({1, 1}, {}, "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)"),
    bf16_blocks({}, {1, 1024}, "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)"),
    bf16_blocks({}, {}, "blocks(1024)/mma(x86.vdpbf16ps.bf16.f32)"),
    plain_loop(binary32),
    one_row(),
    few_rows({2, 3}, {}),
    few_rows({}, {1, 11}),
    half_blocks(),
    rule(binary32, "blocks(192)", Evidence::measured),
});
inline constexpr auto torch_value_rules = std::to_array<LinearRule>({
    small_batch(plain_loop(bfloat16)),
    small_batch(
        rule(bfloat16, "lanes(4,1,join=sequential,tail=first-lane,init=zero)", Evidence::measured)),
    bf16_blocks({1, 1}, {}, "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)"),
    bf16_blocks({}, {1, 1024}, "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)"),
    bf16_blocks({}, {}, "blocks(1024)/mma(x86.vdpbf16ps.bf16.f32)"),
    plain_loop(binary32),
    one_by_one({1, 3}, {}),
    one_by_one({}, {1, 11}),
    half_blocks(),
    rule(binary32, "blocks(192)", Evidence::measured),
});

inline constexpr std::string_view torch =
    "PyTorch 2.11.0 from PyPI (MKL 2024.0, oneDNN 3.10.2), one thread, AMD Zen 4: revealed by "
    "probes and replayed bit for bit, 2026; at::linear on 1,512 shapes, 2026-11 (docs/linear.md)";

inline constexpr std::string_view torch_avx2 =
    "PyTorch 2.11.0 from PyPI (MKL 2024.2) with MKL_CBWR=AVX2, ATEN_CPU_CAPABILITY=avx2 and oneDNN "
    "disabled, one thread, AMD Zen 4: revealed and replayed, 2026-11 (docs/torch-cpu.md)";

}  // namespace kvsim::linear_rules
