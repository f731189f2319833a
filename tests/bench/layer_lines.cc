// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/bench/layer_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "sim/attention/run.h"
#include "sim/linear.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::bench {
namespace {

using Codes = std::vector<std::uint16_t>;

Codes codes_of(const softfloat::Format& format, const std::vector<float>& numbers) {
  Codes codes;
  for (const float x : numbers) {
    codes.push_back(static_cast<std::uint16_t>(
        softfloat::convert(format, softfloat::binary32, softfloat::from_float(x)).bits));
  }
  return codes;
}

/// `count` codes out of `few`, in another order in every round.
Codes repeated(const Codes& few, std::int64_t count) {
  Codes codes(static_cast<std::size_t>(count));
  std::size_t at = 0;
  for (std::uint16_t& code : codes) {
    code = few[at];
    at += 1;
    if (at >= few.size()) at -= few.size() - 1;
  }
  return codes;
}

/// One linear layer: outputs × terms.
struct Weights {
  std::int64_t outputs, terms;
};

}  // namespace

struct LayerNumbers {
  AttentionShape shape{
      .query_heads = 32, .kv_heads = 8, .query_len = 1, .kv_len = 8192, .head_dim = 128};
  std::vector<float> q, k, v;
  Codes k_codes, v_codes;
  std::vector<Weights> decoder;  ///< the linear layers of SmolLM2 135M, one after another
  Codes weights;                 ///< bfloat16, of all of them
  std::vector<float> x;          ///< 256 rows
  mutable std::vector<float> out;

  explicit LayerNumbers(bool quick) {
    if (quick) shape.kv_len = 256;
    q = numbers(shape.query_heads * shape.head_dim, 3);
    k = numbers(shape.kv_heads * shape.kv_len * shape.head_dim, 4);
    v = numbers(shape.kv_heads * shape.kv_len * shape.head_dim, 5);
    k_codes = codes_of(softfloat::binary16, k);
    v_codes = codes_of(softfloat::binary16, v);
    const int layers = quick ? 1 : 30;
    for (int i = 0; i < layers; ++i) {
      for (const Weights& each :
           {Weights{576, 576}, Weights{192, 576}, Weights{192, 576}, Weights{576, 576},
            Weights{1536, 576}, Weights{1536, 576}, Weights{576, 1536}}) {
        decoder.push_back(each);
      }
    }
    if (!quick) decoder.push_back({49152, 576});
    std::int64_t count = 0;
    for (const Weights& each : decoder) count += each.outputs * each.terms;
    constexpr std::int64_t few = 99991;
    weights = repeated(codes_of(softfloat::bfloat16, numbers(few, 6, 64)), count);
    x = numbers(256 * std::int64_t{1536}, 7, 64);
    out.resize(256 * std::size_t{49152});
  }
};

namespace {

bool run_decode(const LayerNumbers& numbers, bool from_codes, SimdLevel level) {
  AttentionProblem problem{.shape = numbers.shape,
                           .mask = {},
                           .storage = softfloat::binary16,
                           .q = numbers.q.data(),
                           .k = numbers.k.data(),
                           .v = numbers.v.data(),
                           .launch = {.splits = 1}};
  if (from_codes) {
    problem.k = NumberPointer(NumberCode::binary16, numbers.k_codes.data());
    problem.v = NumberPointer(NumberCode::binary16, numbers.v_codes.data());
  }
  AttentionOptions options;
  options.engine.level = level;
  return run_attention(*find_attention_kernel("h100-fa2"), problem, options).has_value();
}

/// The first `count` linear layers of the decoder, each for `rows` rows.
bool run_linear(const LayerNumbers& numbers, const char* kernel, std::size_t count,
                std::int64_t rows, SimdLevel level) {
  const std::uint16_t* weights = numbers.weights.data();
  for (std::size_t i = 0; i < count; ++i) {
    const Weights& each = numbers.decoder[i];
    const LinearProblem problem{.rows = rows,
                                .outputs = each.outputs,
                                .terms = each.terms,
                                .storage = softfloat::bfloat16,
                                .multiprocessors = 132,
                                .x = numbers.x.data(),
                                .x_stride = each.terms,
                                .w = NumberPointer(NumberCode::bfloat16, weights),
                                .w_stride = each.terms,
                                .w_by_outputs = true};
    if (!apply_linear(*find_linear_kernel(kernel), problem, numbers.out.data(), each.outputs,
                      {.level = level})) {
      return false;
    }
    weights += each.outputs * each.terms;
  }
  return true;
}

double multiply_adds(const LayerNumbers& numbers, std::size_t count) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += numbers.decoder[i].outputs * numbers.decoder[i].terms;
  }
  return static_cast<double>(sum);
}

}  // namespace

std::shared_ptr<const LayerNumbers> make_layer_numbers(bool quick) {
  return std::make_shared<const LayerNumbers>(quick);
}

Line memory_line(const std::shared_ptr<const LayerNumbers>& numbers) {
  const std::size_t words = numbers->weights.size() / 4;
  return {.name = read_name,
          .level = "",
          .operations = static_cast<double>(words * 8),
          .run = [numbers, words] {
            const auto* from = reinterpret_cast<const unsigned char*>(numbers->weights.data());
            std::uint64_t sums[16] = {};
            for (std::size_t i = 0; i + 16 <= words; i += 16) {
              std::uint64_t line[16];
              std::memcpy(line, from + 8 * i, sizeof line);
              for (std::size_t j = 0; j < 16; ++j) sums[j] += line[j];
            }
            std::uint64_t sum = 0;
            for (const std::uint64_t each : sums) sum += each;
            return sum != 1;  // never; keeps the loop
          }};
}

std::vector<Line> layer_lines(const std::shared_ptr<const LayerNumbers>& numbers, SimdLevel level) {
  const std::string at = fmt::format(", {}", simd_level_name(level));
  const std::string half = "h100.mma.f16.f32" + at;
  const std::string bfloat = "h100.mma.bf16.f32" + at;
  const double decode_operations =
      2.0 * static_cast<double>(numbers->shape.query_heads * numbers->shape.kv_len *
                                numbers->shape.head_dim);
  std::vector<Line> lines;
  for (const bool codes : {false, true}) {
    lines.push_back({.name = fmt::format("h100-fa2 decode, {} keys, {}{}", numbers->shape.kv_len,
                                         codes ? "codes" : "floats", at),
                     .level = simd_level_name(level),
                     .operations = decode_operations,
                     .at_most = codes ? 1.5 : 0,
                     .run = [=] { return run_decode(*numbers, codes, level); },
                     .base = half});
  }
  const std::size_t all = numbers->decoder.size();
  constexpr std::size_t one = 7;
  lines.push_back({.name = "135M linear, h100-gemv, 1 row" + at,
                   .level = simd_level_name(level),
                   .operations = multiply_adds(*numbers, all),
                   .at_most = 1.7,
                   .run = [=] { return run_linear(*numbers, "h100-gemv", all, 1, level); },
                   .base = bfloat,
                   .bytes = 2});
  for (const std::int64_t rows : {1, 4, 256}) {
    const double share = rows == 256 ? 0 : 2 / static_cast<double>(rows);
    const std::size_t count = rows == 256 ? one : all;
    lines.push_back(
        {.name = fmt::format("135M linear, h100-gemm, {} row{}{}", rows, rows == 1 ? "" : "s", at),
         .level = simd_level_name(level),
         .operations = multiply_adds(*numbers, count) * static_cast<double>(rows),
         .at_most = rows == 256 ? 1.5 : 0,
         .run = [=] { return run_linear(*numbers, "h100-gemm", count, rows, level); },
         .base = bfloat,
         .bytes = share});
  }
  return lines;
}

}  // namespace kvsim::bench
