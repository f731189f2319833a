// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors

// What PyTorch computed on a CPU, operator by operator, against the kernels of the dispatch
// torch-cpu-avx2: the same bits. scripts/make_torch_cpu_goldens.py remakes the file.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/safetensors.h"
#include "sim/attention/run.h"
#include "sim/dispatch.h"
#include "sim/linear.h"
#include "sim/operators/activation.h"
#include "sim/operators/norm.h"
#include "sim/operators/residual.h"
#include "sim/operators/row_sums.h"
#include "sim/operators/softmax.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

using softfloat::Format;

/// Numbers of a tensor, and its shape.
struct Numbers {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// A case: its tensors by role.
struct Case {
  std::string name;
  Format storage;
  std::map<std::string, Numbers> tensors;

  [[nodiscard]] const Numbers& operator[](const std::string& role) const {
    return tensors.at(role);
  }
};

Numbers read(const Tensor& tensor) {
  Numbers numbers;
  for (const auto size : tensor.shape) numbers.shape.push_back(static_cast<std::int64_t>(size));
  const bool is_short = tensor.dtype == Dtype::bf16;
  const std::size_t bytes = is_short ? 2 : 4;
  for (std::size_t at = 0; at + bytes <= tensor.bytes.size(); at += bytes) {
    std::uint32_t code = 0;
    std::memcpy(&code, tensor.bytes.data() + at, bytes);
    numbers.values.push_back(std::bit_cast<float>(is_short ? code << 16U : code));
  }
  return numbers;
}

/// Every case of an operator.
std::vector<Case> cases_of(std::string_view operation) {
  const auto file =
      SafetensorsFile::open(KVSIM_SOURCE_DIR "/tests/golden/torch-cpu/pinned.safetensors");
  EXPECT_TRUE(file) << file.error().message;
  std::map<std::string, Case> cases;
  for (const Tensor& tensor : file->tensors()) {
    const std::string name(tensor.name);
    if (!name.starts_with(std::string(operation) + " ")) continue;
    const std::size_t colon = name.find(':');
    Case& mine = cases[name.substr(0, colon)];
    mine.name = name.substr(0, colon);
    mine.storage =
        name.find(" bf16 ") != std::string::npos ? softfloat::bfloat16 : softfloat::binary32;
    mine.tensors[name.substr(colon + 1)] = read(tensor);
  }
  std::vector<Case> all;
  for (auto& [name, mine] : cases) all.push_back(std::move(mine));
  EXPECT_FALSE(all.empty()) << operation;
  return all;
}

const Dispatch& row() { return **find_dispatch("torch-cpu-avx2"); }

/// How many of the results differ.
int differences(const std::vector<float>& out, const Numbers& expected) {
  if (out.size() != expected.values.size()) return -1;
  int count = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    count +=
        std::bit_cast<std::uint32_t>(out[i]) != std::bit_cast<std::uint32_t>(expected.values[i])
            ? 1
            : 0;
  }
  return count;
}

void expect_equal(const Case& mine, const std::string& role, const std::vector<float>& out) {
  EXPECT_EQ(differences(out, mine[role]), 0)
      << mine.name << ", " << role << ", of " << out.size() << " numbers";
}

std::vector<float> linear(const Case& mine, std::int64_t rows, std::int64_t outputs, bool biased,
                          std::string_view kernel = row().linear[0].kernel) {
  const std::int64_t terms = mine["x"].shape[1];
  std::vector<float> out(static_cast<std::size_t>(rows * outputs));
  const auto done = apply_linear(*find_linear_kernel(kernel),
                                 {.rows = rows,
                                  .outputs = outputs,
                                  .terms = terms,
                                  .storage = mine.storage,
                                  .x = mine["x"].values.data(),
                                  .x_stride = terms,
                                  .w = mine["w"].values.data(),
                                  .w_stride = terms,
                                  .w_by_outputs = true,
                                  .bias = biased ? mine["bias"].values.data() : nullptr},
                                 out.data(), outputs);
  EXPECT_TRUE(done) << done.error().message;
  return out;
}

TEST(TorchCpuGolden, Linear) {
  for (const Case& mine : cases_of("linear")) {
    const std::int64_t outputs = mine["w"].shape[0];
    for (const std::int64_t rows : {1, 2, 5}) {
      expect_equal(mine, "out" + std::to_string(rows), linear(mine, rows, outputs, false));
      expect_equal(mine, "biased" + std::to_string(rows), linear(mine, rows, outputs, true));
    }
    expect_equal(mine, "column", linear(mine, mine["x"].shape[0], 1, false));
  }
}

// The file can tell orders apart: as installed, four terms go before the lanes, not one.
TEST(TorchCpuGolden, AnotherOrderIsSeen) {
  for (const Case& mine : cases_of("linear")) {
    if (mine.name != "linear f32 k=64") continue;
    const std::vector<float> out = linear(mine, 1, mine["w"].shape[0], false, "torch-cpu-linear");
    EXPECT_GT(differences(out, mine["out1"]), 8) << mine.name;
  }
}

TEST(TorchCpuGolden, SumAndMean) {
  for (const Case& mine : cases_of("sum")) {
    const std::int64_t columns = mine["x"].shape[1];
    const auto sums = [&](const char* order) {
      std::vector<float> out(3);
      EXPECT_TRUE(sum_rows(
          {*parse_order(order), Product::rounded, 3, columns, mine["x"].values.data(), nullptr},
          out.data()));
      return out;
    };
    const bool single = mine.storage == softfloat::binary32;
    std::vector<float> out = sums(single ? "torch-cascade(8)" : "torch-cascade(8,2)");
    EXPECT_TRUE(round_values(mine.storage, out, out));
    expect_equal(mine, "out", out);
    std::vector<float> mean = sums("torch-cascade(8)");
    for (float& x : mean) x /= static_cast<float>(columns);
    EXPECT_TRUE(round_values(mine.storage, mean, mean));
    expect_equal(mine, "mean", mean);
  }
}

TEST(TorchCpuGolden, RmsNorm) {
  for (const Case& mine : cases_of("rms")) {
    for (const auto& [role, kernel] :
         {std::pair{"out", row().norm}, {"gemma", row().norm_plus_one}}) {
      std::vector<float> out(mine["x"].values.size());
      const NormProblem problem{.storage = mine.storage,
                                .rows = 3,
                                .columns = mine["x"].shape[1],
                                .x = mine["x"].values.data(),
                                .weight = mine["w"].values.data(),
                                .epsilon = 1e-5};
      ASSERT_TRUE(apply_norm(*find_norm_kernel(kernel), problem, out.data()));
      expect_equal(mine, role, out);
    }
  }
}

TEST(TorchCpuGolden, Softmax) {
  for (const Case& mine : cases_of("softmax")) {
    const auto softmax = [&](std::string_view kernel, const Format& storage) {
      std::vector<float> out(mine["x"].values.size());
      EXPECT_TRUE(apply_softmax(*find_softmax_kernel(kernel),
                                {.storage = storage,
                                 .rows = 3,
                                 .columns = mine["x"].shape[1],
                                 .x = mine["x"].values.data()},
                                out.data()));
      return out;
    };
    expect_equal(mine, "single", softmax(row().softmax, softfloat::binary32));
    const bool single = mine.storage == softfloat::binary32;
    expect_equal(mine, "out",
                 softmax(single ? row().softmax : "torch-cpu-avx2-softmax-16bit", mine.storage));
  }
}

TEST(TorchCpuGolden, ElementByElement) {
  for (const auto& [operation, kernel] :
       {std::pair{"silu", row().silu}, {"gelu", row().gelu_tanh}}) {
    for (const Case& mine : cases_of(operation)) {
      std::vector<float> out(mine["x"].values.size());
      ASSERT_TRUE(
          apply_activation(*find_activation_kernel(kernel), mine.storage, mine["x"].values, out));
      expect_equal(mine, "out", out);
    }
  }
  for (const Case& mine : cases_of("rsqrt")) {
    std::vector<float> out;
    for (const float x : mine["x"].values) out.push_back(1.0F / std::sqrt(x));
    ASSERT_TRUE(round_values(mine.storage, out, out));
    expect_equal(mine, "out", out);
  }
  for (const Case& mine : cases_of("residual")) {
    std::vector<float> out(mine["x"].values.size());
    ASSERT_TRUE(add_residual(*find_residual_kernel(row().residual), mine.storage, mine["x"].values,
                             mine["y"].values, out));
    expect_equal(mine, "out", out);
    ASSERT_TRUE(multiply_elements(mine.storage, mine["x"].values, mine["y"].values, out));
    expect_equal(mine, "product", out);
  }
}

TEST(TorchCpuGolden, Attention) {
  for (const Case& mine : cases_of("attention")) {
    const Numbers& q = mine["q"];
    const Numbers& k = mine["k"];
    for (const auto& [role, kernel] :
         {std::pair{"flash", row().attention_prefill}, {"eager", "torch-cpu-avx2-eager"}}) {
      AttentionProblem problem;
      problem.shape = {q.shape[0], k.shape[0], q.shape[1], k.shape[1], q.shape[2]};
      problem.mask.causal = mine.name.find("causal=1") != std::string::npos;
      problem.storage = mine.storage;
      problem.q = q.values.data();
      problem.k = k.values.data();
      problem.v = mine["v"].values.data();
      const auto result = run_attention(*find_attention_kernel(kernel), problem);
      ASSERT_TRUE(result) << result.error().message;
      expect_equal(mine, role, result->out);
    }
  }
}

}  // namespace
}  // namespace kvsim
