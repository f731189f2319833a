// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/attention_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuzz/flip/reference.h"
#include "sim/attention/product_sum.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::fuzz {
namespace {

/// Keys of a block, from its first one.
struct KeysOfBlock {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// What is added by some of the keys.
StepErrors part_errors(StepTaker& taker, const BlockProduct& product, const KeysOfBlock& keys,
                       std::span<const float> before, std::span<const float> after,
                       const softfloat::Format& format) {
  const auto p = product.record.after(AttentionStep::probabilities);
  const std::int64_t first = product.record.place.first_key;
  taker.go_to_keys(first + keys.begin, first + keys.end);
  return taker.projected(
      "P·V", format, [&](std::size_t d) { return static_cast<double>(after[d]); },
      [&](std::size_t d) {
        DoubleDouble sum(static_cast<double>(before[d]));
        for (std::int64_t j = keys.begin; j < keys.end; ++j) {
          sum = sum +
                static_cast<double>(p[index(j)]) * static_cast<double>(taker.value(first + j)[d]);
        }
        return sum;
      });
}

/// The outputs after each instruction, the one before the first in front; nothing where they do not
/// end at the kernel's.
std::vector<std::vector<float>> outputs_by_instruction(const StepTaker& taker,
                                                       const BlockProduct& product,
                                                       const attention::ProductSum& sum,
                                                       std::int64_t step) {
  const auto columns = static_cast<std::int64_t>(product.before.size());
  std::vector<std::vector<float>> outputs;
  outputs.emplace_back(product.before.begin(), product.before.end());
  for (std::int64_t j = 0; j < product.record.place.keys; j += step) {
    const std::int64_t count = std::min(step, product.record.place.keys - j);
    std::vector<float> next(product.before.size());
    const Result<bool> done =
        sum.multiply({.rows = 1,
                      .terms = count,
                      .columns = columns,
                      .a = product.record.after(AttentionStep::probabilities).data() + j,
                      .a_stride = count,
                      .b = taker.value(product.record.place.first_key + j).data(),
                      .b_stride = columns,
                      .c = outputs.back().data(),
                      .c_stride = columns},
                     next.data(), columns, {.threads = 1});
    if (!done) return {};
    outputs.push_back(std::move(next));
  }
  if (!std::ranges::equal(outputs.back(), product.record.after(AttentionStep::output))) return {};
  return outputs;
}

}  // namespace

StepTaker::StepTaker(const HeadInput& input, std::vector<Rounding>& roundings)
    : roundings_(roundings), head_(input.head) {
  const AttentionShape& sizes = input.flip_case.shape.attention;
  const std::size_t d = index(sizes.head_dim);
  const std::size_t numbers = index(sizes.kv_len) * d;
  const std::size_t kv_head = index(input.head / sizes.group());
  const std::span<const float> tokens(input.flip_case[CaseTensor::tokens]);
  query_ = std::span(input.flip_case[CaseTensor::q]).subspan(index(input.head) * d, d);
  keys_ = std::span(input.flip_case[CaseTensor::k]).subspan(kv_head * numbers, numbers);
  values_ = std::span(input.flip_case[CaseTensor::v]).subspan(kv_head * numbers, numbers);
  first_row_ = tokens.subspan(index(input.head) * d, d);
  second_row_ = tokens.subspan(tokens.size() / 2 + index(input.head) * d, d);
}

void StepTaker::go_to_keys(std::int64_t first, std::int64_t end) {
  place_ = fmt::format("query head {}, keys {}..{}", head_, first, end - 1);
}

DoubleDouble StepTaker::score(std::int64_t key) const {
  return exact_dot(query_, keys_.subspan(index(key) * query_.size(), query_.size()));
}

DoubleDouble StepTaker::along(std::int64_t key) const {
  return exact_dot(first_row_, value(key)) - exact_dot(second_row_, value(key));
}

std::span<const float> StepTaker::value(std::int64_t key) const {
  return values_.subspan(index(key) * query_.size(), query_.size());
}

std::vector<StepErrors> product_errors(StepTaker& taker, const BlockProduct& product) {
  const auto sum = attention::ProductSum::parse(product.order, product.product, product.operand);
  const auto after = product.record.after(AttentionStep::output);
  const std::int64_t keys = product.record.place.keys;
  const softfloat::Format format = sum ? sum->output() : product.output;
  std::vector<StepErrors> errors;
  if (sum && sum->unit() != nullptr) {
    const std::int64_t step = std::int64_t{sum->unit()->fan_in} * sum->unit()->blocks;
    const auto outputs = outputs_by_instruction(taker, product, *sum, step);
    for (std::size_t i = 0; i + 1 < outputs.size(); ++i) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * step;
      errors.push_back(part_errors(taker, product, {begin, std::min(begin + step, keys)},
                                   outputs[i], outputs[i + 1], format));
    }
  }
  if (errors.empty()) {
    errors.push_back(part_errors(taker, product, {0, keys}, product.before, after, format));
  }
  return errors;
}

}  // namespace kvsim::fuzz
