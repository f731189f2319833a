// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "sim/compare.h"
#include "sim/linear.h"
#include "sim/random_weights.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"
#include "softfloat/sha256.h"

namespace kvsim {
namespace {

// 1, 2, 17 and 66 rows, 29 outputs, 700 terms: every rule of a kernel takes part in one of them.
constexpr std::int64_t row_counts[] = {1, 2, 17, 66};
constexpr std::int64_t outputs = 29;
constexpr std::int64_t terms = 700;

/// The digest of all results, as float32.
std::string digest(const LinearKernel& kernel, const softfloat::Format& storage) {
  std::vector<float> x(66 * terms);
  std::vector<float> w(terms * outputs);
  EXPECT_TRUE(fill_random_weights({1, 1, storage, 1}, 0, x));
  EXPECT_TRUE(fill_random_weights({1, 2, storage, 1}, 0, w));
  // The second half of the terms cancels the first: what is left is rounding noise, which shows in
  // 16-bit results, too.
  for (std::int64_t k = 0; k < terms / 2; ++k) {
    const std::int64_t mirror = terms - 1 - k;
    for (std::int64_t i = 0; i < 66; ++i) x[index(i * terms + mirror)] = -x[index(i * terms + k)];
    for (std::int64_t j = 0; j < outputs; ++j)
      w[index(mirror * outputs + j)] = w[index(k * outputs + j)];
  }
  std::vector<float> results;
  for (const std::int64_t rows : row_counts) {
    std::vector<float> out(index(rows * outputs));
    const auto done = apply_linear(kernel,
                                   {.rows = rows,
                                    .outputs = outputs,
                                    .terms = terms,
                                    .storage = storage,
                                    .multiprocessors = 132,
                                    .x = x.data(),
                                    .x_stride = terms,
                                    .w = w.data(),
                                    .w_stride = outputs},
                                   out.data(), outputs);
    EXPECT_TRUE(done) << done.error().message;
    results.insert(results.end(), out.begin(), out.end());
  }
  return sha256(encode_values(softfloat::binary32, results));
}

// A new row is a new line here; a line that moves is a result that changed.
TEST(LinearGolden, EveryKernelGivesTheBitsOfBefore) {
  std::string lines;
  for (const LinearKernel& kernel : linear_kernels()) {
    std::set<std::string_view> storages;
    for (const LinearRule& rule : kernel.rules) {
      const std::string_view name = softfloat::format_name(rule.storage);
      if (!storages.insert(name).second) continue;
      lines += std::string(kernel.name) + " " + std::string(name) + " " +
               digest(kernel, rule.storage) + "\n";
    }
  }
  std::ifstream file(KVSIM_SOURCE_DIR "/tests/golden/linear-digests.txt");
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(golden, lines) << "the digests now:\n" << lines;
}

}  // namespace
}  // namespace kvsim
