// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "sim/attention/run.h"
#include "softfloat/formats.h"
#include "tests/sim/attention/plain/kernels.h"

/// Runs one problem through the product and the plain version.
namespace kvsim::test {

inline AttentionProblem product_problem(const plain::Problem& p) {
  AttentionProblem problem;
  problem.shape = {p.heads, p.kv_heads, p.query_len, p.kv_len, p.head_dim};
  problem.mask = {p.causal, p.window, p.soft_cap};
  problem.storage = p.storage;
  problem.scale = p.given_scale;
  problem.q = p.q.data();
  problem.k = p.k.data();
  problem.v = p.v.data();
  problem.launch.batch = p.batch;
  problem.launch.longest_kv_len = p.longest_kv_len;
  problem.launch.kv_lens = p.kv_lens;
  problem.launch.multiprocessors = p.multiprocessors;
  problem.launch.splits = p.forced_splits;
  problem.launch.split_size = p.split_size;
  problem.launch.cpu_threads = p.cpu_threads;
  problem.launch.page_size = p.page_size;
  problem.launch.paged = p.paged;
  return problem;
}

inline std::string describe(const plain::Problem& p) {
  const auto number = [](std::int64_t x) { return std::to_string(x); };
  return "heads " + number(p.heads) + "/" + number(p.kv_heads) + ", query_len " +
         number(p.query_len) + ", kv_len " + number(p.kv_len) + ", head_dim " + number(p.head_dim) +
         (p.causal ? ", causal" : "") + ", window " + number(p.window) + ", soft cap " +
         std::to_string(p.soft_cap) + ", scale " + std::to_string(p.given_scale) + ", " +
         std::string(softfloat::format_name(p.storage)) + ", batch " + number(p.batch) +
         ", longest " + number(p.longest_kv_len) + ", SMs " + number(p.multiprocessors) +
         ", splits " + number(p.forced_splits) + ", split size " + number(p.split_size) +
         ", threads " + number(p.cpu_threads) + ", page size " + number(p.page_size) +
         (p.paged ? ", paged" : "");
}

/// NaN are the same where the product gives the canonical one.
inline bool same(float plain, float product) {
  const auto bits = std::bit_cast<std::uint32_t>(product);
  if (std::isnan(plain)) return bits == 0x7fc00000U;
  return std::bit_cast<std::uint32_t>(plain) == bits;
}

/// Where two lists differ first, or "".
inline std::string difference(std::string_view what, const std::vector<float>& plain,
                              const std::vector<float>& product) {
  if (plain.size() != product.size()) return std::string(what) + " has another size";
  std::size_t count = 0;
  std::size_t first = 0;
  for (std::size_t i = plain.size(); i-- > 0;) {
    if (same(plain[i], product[i])) continue;
    ++count;
    first = i;
  }
  if (count == 0) return "";
  char text[160];
  std::snprintf(text, sizeof(text), " differs in %zu of %zu, first at %zu: plain %a, product %a",
                count, plain.size(), first, static_cast<double>(plain[first]),
                static_cast<double>(product[first]));
  return std::string(what) + text;
}

/// What differs between the two versions on one problem, or "".
inline std::string compare(const plain::Kernel& kernel, const plain::Problem& p) {
  const AttentionKernel* const row = find_attention_kernel(kernel.name);
  if (row == nullptr) return "no such kernel";
  const Result<AttentionResult> product = run_attention(*row, product_problem(p));
  if (!product) return product.error().message;
  const plain::Result plain = kernel.run(p);
  if (plain.splits != product->splits) {
    return "splits: plain " + std::to_string(plain.splits) + ", product " +
           std::to_string(product->splits);
  }
  const std::string out = difference("out", plain.out, product->out);
  if (!out.empty() || product->lse.empty()) return out;
  return difference("lse", plain.lse, product->lse);
}

}  // namespace kvsim::test
