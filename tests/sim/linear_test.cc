// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/linear.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

#include "sim/philox.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"
#include "tests/sim/linear_oracle.h"

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary16;
using softfloat::binary32;
using softfloat::e4m3;
using softfloat::e4m3fnuz;
using softfloat::Format;
using test::OneOutput;
using test::round_to;

/// A random layer in which half of the terms are the negated other half, so that the results are
/// rounding noise.
struct Layer {
  LinearProblem problem;
  std::vector<float> x;
  std::vector<float> w;

  Layer(std::uint64_t seed, std::int64_t rows, std::int64_t outputs, std::int64_t terms,
        const Format& storage) {
    x.resize(static_cast<std::size_t>(rows * terms));
    w.resize(static_cast<std::size_t>(terms * outputs));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = number(seed, 1, i, storage);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = number(seed, 2, i, storage);
    for (std::int64_t k = 0; k + 1 < terms; k += 2) {
      const std::int64_t to = (k + 1 + static_cast<std::int64_t>(seed % 7) * 2) % terms;
      for (std::int64_t i = 0; i < rows; ++i) {
        x[at(i * terms + to)] = -x[at(i * terms + k)];
      }
      for (std::int64_t j = 0; j < outputs; ++j) w[at(to * outputs + j)] = w[at(k * outputs + j)];
    }
    problem = {.rows = rows,
               .outputs = outputs,
               .terms = terms,
               .storage = storage,
               .multiprocessors = 132,
               .x = x.data(),
               .x_stride = terms,
               .w = w.data(),
               .w_stride = outputs};
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  static float number(std::uint64_t seed, std::uint64_t stream, std::uint64_t i,
                      const Format& storage) {
    const std::uint64_t bits = philox_bits(seed, stream, i);
    const float magnitude = 0.5F + static_cast<float>(bits >> 40) * 0x1p-24F;
    return round_to(storage, (bits & 1) != 0 ? -magnitude : magnitude);
  }
  [[nodiscard]] OneOutput output(std::int64_t i, std::int64_t j) const {
    OneOutput one{.x = {},
                  .w = {},
                  .rows = problem.rows,
                  .outputs = problem.outputs,
                  .column = j,
                  .row = i,
                  .storage = problem.storage,
                  .multiprocessors = problem.multiprocessors};
    for (std::int64_t k = 0; k < problem.terms; ++k) {
      one.x.push_back(x[at(i * problem.terms + k)]);
      one.w.push_back(w[at(k * problem.outputs + j)]);
    }
    return one;
  }
  [[nodiscard]] std::vector<float> run(const char* name) const { return run(name, problem); }
  /// The same from the weights as a checkpoint stores them: [outputs][terms], codes where the
  /// format has 16 bits.
  [[nodiscard]] std::vector<float> run_stored(const char* name) const {
    std::vector<float> turned;
    std::vector<std::uint16_t> codes;
    for (std::int64_t j = 0; j < problem.outputs; ++j) {
      for (std::int64_t k = 0; k < problem.terms; ++k) {
        turned.push_back(w[at(k * problem.outputs + j)]);
        const auto code =
            softfloat::convert(problem.storage, binary32, softfloat::from_float(turned.back()));
        codes.push_back(static_cast<std::uint16_t>(code.bits));
      }
    }
    LinearProblem stored = problem;
    stored.w_by_outputs = true;
    stored.w_stride = problem.terms;
    const bool has_codes = problem.storage == bfloat16 || problem.storage == binary16;
    stored.w = has_codes ? *NumberPointer::of(problem.storage, codes.data()) : turned.data();
    return run(name, stored);
  }

 private:
  static std::vector<float> run(const char* name, const LinearProblem& problem) {
    std::vector<float> out(at(problem.rows * problem.outputs), 7);
    const LinearKernel* kernel = find_linear_kernel(name);
    if (kernel == nullptr) {
      ADD_FAILURE() << name;
      return out;
    }
    const auto done = apply_linear(*kernel, problem, out.data(), problem.outputs);
    EXPECT_TRUE(done) << done.error().message;
    return out;
  }
};

struct KernelCase {
  const char* name;
  Format storage;
  Format output;
  std::function<float(const OneOutput&)> expected;
};

test::PartSum unit(const char* name) {
  return [name](const OneOutput& o, std::int64_t begin, std::int64_t end) {
    return test::unit_sum(o, name, begin, end);
  };
}

std::vector<KernelCase> kernel_cases() {
  const auto chain = [](const char* name) {
    return [part = unit(name)](const OneOutput& o) { return part(o, 0, o.terms()); };
  };
  const auto split = [](const char* name, test::Joined joined) {
    return [part = unit(name), joined](const OneOutput& o) {
      return test::split_sum(o, joined, part);
    };
  };
  const auto warp = [](std::size_t lanes) {
    return [lanes](const OneOutput& o) { return test::warp_sum(o, lanes); };
  };
  return {
      {"v100-gemm", binary16, binary16, chain("v100.mma.f16.f32")},
      {"a100-gemm", bfloat16, bfloat16, chain("a100.mma.bf16.f32")},
      {"a100-gemm", binary32, binary32,
       [](const OneOutput& o) { return test::fma_sum(o, 0, o.terms()); }},
      {"a100-splitk", binary16, binary16, split("a100.mma.f16.f32", test::Joined::plain)},
      {"a100-splitk-serial", bfloat16, bfloat16,
       split("a100.mma.bf16.f32", test::Joined::rounded_total)},
      {"h100-gemm", binary16, binary16, chain("h100.wgmma.f16.f32")},
      {"h100-batch-invariant", bfloat16, bfloat16, chain("h100.wgmma.bf16.f32")},
      {"h100-splitk", bfloat16, bfloat16, split("h100.wgmma.bf16.f32", test::Joined::plain)},
      {"h100-splitk-serial", binary16, binary16,
       split("h100.wgmma.f16.f32", test::Joined::rounded_total)},
      {"h100-splitk-rounded", binary16, binary16,
       split("h100.wgmma.f16.f32", test::Joined::rounded_parts)},
      {"a100-gemm-tf32", binary32, binary32, chain("a100.mma.tf32.f32")},
      {"h100-gemm-f16-sums", binary16, binary16, chain("h100.wgmma.f16.f16")},
      {"h100-gemv", binary16, binary16, warp(32)},
      {"h100-fp8", e4m3, bfloat16, chain("h100.wgmma.e4m3.f32")},
      {"h100-fp8-promoted", e4m3, bfloat16,
       [](const OneOutput& o) { return test::in_blocks(o, 128, unit("h100.wgmma.e4m3.f32")); }},
      {"b200-gemm", bfloat16, bfloat16, chain("b200.tcgen05.bf16.f32")},
      {"mi300-gemm", binary16, binary16, chain("mi300.mfma.f16.f32")},
      {"mi300-gemv", bfloat16, bfloat16, warp(64)},
      {"mi300-fp8", e4m3fnuz, bfloat16, chain("mi300.mfma.e4m3fnuz.f32")},
      {"torch-cpu-linear", binary32, binary32, test::torch_float32},
      {"torch-cpu-linear", bfloat16, bfloat16, test::torch_bfloat16},
      {"torch-cpu-avx2-linear", binary32, binary32, test::torch_avx2_float32},
      {"torch-cpu-avx2-linear", bfloat16, bfloat16, test::aten_dot},
      {"control-linear", binary16, binary16,
       [](const OneOutput& o) { return test::fma_sum(o, 0, o.terms()); }},
  };
}

// 200 random shapes over all kernels; sizes around the borders of the rules among them.
TEST(Linear, EqualsThePlainVersion) {
  const std::vector<KernelCase> cases = kernel_cases();
  const std::int64_t sizes[] = {1, 2, 3, 4, 5, 11, 12, 13, 16, 17, 31};
  const std::int64_t lengths[] = {1,   2,   5,   16,  63,  64,  65,  128,  191,  192, 193,
                                  257, 383, 384, 385, 512, 513, 700, 1024, 1025, 1100};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const KernelCase& test = cases[seed % cases.size()];
    const std::uint64_t draw = philox_bits(seed, 9, 0);
    const Layer layer(seed, sizes[draw % std::size(sizes)], sizes[draw / 16 % std::size(sizes)],
                      lengths[draw / 256 % std::size(lengths)], test.storage);
    SCOPED_TRACE(std::string(test.name) + " " + std::to_string(layer.problem.rows) + " × " +
                 std::to_string(layer.problem.outputs) + " × " +
                 std::to_string(layer.problem.terms));
    const std::vector<float> out = layer.run(test.name);
    const std::vector<float> stored = layer.run_stored(test.name);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(stored[i]), std::bit_cast<std::uint32_t>(out[i])) << i;
    }
    for (std::int64_t i = 0; i < layer.problem.rows; ++i) {
      for (std::int64_t j = 0; j < layer.problem.outputs; ++j) {
        const float expected = round_to(test.output, test.expected(layer.output(i, j)));
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[Layer::at(i * layer.problem.outputs + j)]),
                  std::bit_cast<std::uint32_t>(expected))
            << i << ", " << j;
      }
    }
  }
}

// The rows that the random shapes meet rarely.
TEST(Linear, BordersOfTorchRules) {
  const LinearKernel& kernel = *find_linear_kernel("torch-cpu-linear");
  const auto order = [&](std::int64_t rows, std::int64_t outputs, std::int64_t terms,
                         const Format& storage) {
    const auto plan = linear_order(kernel, {rows, outputs, terms, storage, 1});
    return plan ? to_string(*plan) : plan.error().message;
  };
  EXPECT_EQ(order(4, 12, 192, binary32), "blocks(192)");
  EXPECT_EQ(order(4, 12, 193, binary32), "blocks(96)");
  EXPECT_EQ(order(4, 12, 383, binary32), "blocks(191)");
  EXPECT_EQ(order(4, 12, 384, binary32), "blocks(192)");
  EXPECT_EQ(order(4, 11, 384, binary32), "lanes(4,1,join=halving,tail=scalar)");
  EXPECT_EQ(order(3, 12, 384, binary32), "lanes(4,1,join=halving,tail=scalar)");
  EXPECT_EQ(order(1, 1, 4096, bfloat16), "torch-dot(8)");
  EXPECT_EQ(order(1, 2, 4096, bfloat16), "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)");
  EXPECT_EQ(order(2, 2, 1025, bfloat16), "blocks(1024)/mma(x86.vdpbf16ps.bf16.f32)");
  EXPECT_EQ(order(1, 2, 4097, bfloat16), "blocks(512)/mma(x86.vdpbf16ps.bf16.f32)");
  const auto columns = [&](std::int64_t rows, std::int64_t outputs, std::int64_t terms) {
    std::string text;
    const auto plan = plan_linear(kernel, {rows, outputs, terms, binary32, 1});
    for (const LinearColumns& c : plan.value().columns) {
      text += fmt::format("{}+{} {}; ", c.first, c.count, to_string(c.order));
    }
    return text;
  };
  const std::string main_part = "0+12 lanes(4,1,join=halving,tail=scalar,head=4); ";
  const std::string edge = " lanes(8,1,join=halving,tail=scalar,head=4); ";
  const std::string second = " lanes(4,1,join=halving,tail=scalar,multiple=8,head=4); ";
  EXPECT_EQ(columns(1, 13, 8), main_part + "12+1" + edge);
  EXPECT_EQ(columns(1, 14, 8), main_part + "12+1" + edge + "13+1" + second);
  EXPECT_EQ(columns(1, 15, 8), main_part + "12+1" + edge + "13+1" + second + "14+1" + edge);
  EXPECT_EQ(columns(1, 12, 7), "0+12 lanes(4,1,join=halving,tail=scalar,head=3); ");
  EXPECT_EQ(columns(2, 14, 8),
            "0+12 lanes(4,1,join=halving,tail=scalar); 12+2 lanes(8,1,join=halving,tail=scalar); ");
}

TEST(Linear, EveryRowMakesAnOrder) {
  std::set<std::string_view> names;
  for (const LinearKernel& kernel : linear_kernels()) {
    SCOPED_TRACE(kernel.name);
    EXPECT_TRUE(names.insert(kernel.name).second);
    EXPECT_FALSE(kernel.source.empty());
    EXPECT_FALSE(kernel.rules.empty());
    EXPECT_EQ(find_linear_kernel(kernel.name), &kernel);
    for (const LinearRule& rule : kernel.rules) {
      const auto plan = plan_linear(kernel, {17, 500, 4096, rule.storage, 132});
      EXPECT_TRUE(plan) << plan.error().message;
    }
  }
  EXPECT_EQ(find_linear_kernel("h100"), nullptr);
  const auto wrong = plan_linear(*find_linear_kernel("v100-gemm"), {1, 1, 1, bfloat16, 1});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "linear kernel v100-gemm with storage format bfloat16; accepted: binary16, binary32");
  EXPECT_FALSE(plan_linear(*find_linear_kernel("v100-gemm"), {0, 1, 1, binary16, 1}));
}

// Worked by hand: 2048 outputs are 32 tiles of 64 on 132 multiprocessors; K = 2048 is 32 steps, so
// at most 8 splits. 32 s blocks: s = 4 fills 128 of 132 (97 %), s = 8 fills 256 of 264 (97 %), s =
// 3 96 of 132 (73 %). The smallest within 85 % of the best is 4.
TEST(Linear, SplitsFillTheMultiprocessors) {
  const LinearKernel& kernel = *find_linear_kernel("h100-splitk");
  EXPECT_EQ(split_count(kernel, 16, 2048, 2048, 132), 4);
  EXPECT_EQ(split_count(kernel, 64, 2048, 2048, 132), 4);
  EXPECT_EQ(split_count(kernel, 65, 2048, 2048, 132), 2);
  EXPECT_EQ(split_count(kernel, 16, 8192, 2048, 132), 1);  // 128 tiles keep 4 of 5 busy
  EXPECT_EQ(split_count(kernel, 16, 2048, 200, 132), 1);   // 4 steps: one split
  EXPECT_EQ(split_count(*find_linear_kernel("h100-gemm"), 16, 2048, 2048, 132), 1);
  const auto order = linear_order(kernel, {16, 2048, 2048, bfloat16, 132});
  EXPECT_EQ(to_string(*order), "split(4,multiple=64)/mma(h100.wgmma.bf16.f32)");
}

// 1 + 2^−11 is halfway between two float16 numbers: rounding first loses the bias of 2^−11.
TEST(Linear, Epilogue) {
  LinearKernel kernel = *find_linear_kernel("control-linear");
  const float x[] = {1, 0x1p-11F};
  const float w[] = {1, 1, 1, 1};
  const float bias[] = {0x1p-11F, 0};
  const float c[] = {1, -2};
  LinearProblem problem{.rows = 1,
                        .outputs = 2,
                        .terms = 2,
                        .storage = binary16,
                        .x = x,
                        .x_stride = 2,
                        .w = w,
                        .w_stride = 2,
                        .bias = bias};
  float out[2] = {};
  ASSERT_TRUE(apply_linear(kernel, problem, out, 2));
  EXPECT_EQ(out[0], 1 + 0x1p-10F);
  EXPECT_EQ(out[1], 1);
  kernel.bias_after_rounding = true;
  ASSERT_TRUE(apply_linear(kernel, problem, out, 2));
  EXPECT_EQ(out[0], 1);
  problem.bias = nullptr;
  problem.alpha = 2;
  ASSERT_TRUE(apply_linear(kernel, problem, out, 2));
  EXPECT_EQ(out[0], 2);
  problem.c = c;
  problem.c_stride = 2;
  problem.beta = 3;
  ASSERT_TRUE(apply_linear(kernel, problem, out, 2));
  EXPECT_EQ(out[0], round_to(binary16, 5 + 0x1p-10F));
  EXPECT_EQ(out[1], round_to(binary16, -4 + 0x1p-10F));
}

}  // namespace
}  // namespace kvsim
