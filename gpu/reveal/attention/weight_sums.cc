// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/attention/weight_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numbers>
#include <span>
#include <utility>

#include "gpu/reveal/order_fit.h"
#include "gpu/reveal/positive_tree.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// Scores below the largest: what is lost beside it, one unit in its last place, and of no account.
constexpr double ln_three_quarters = -0.287682072451780927;
constexpr double tiny_score = ln_three_quarters - 24 * std::numbers::ln2;
constexpr double unit_score = -23 * std::numbers::ln2;
constexpr double filler_score = -45;

class WeightSums {
 public:
  explicit WeightSums(AttentionCalls& calls) : calls_(calls) {}

  /// Questions of one call: query heads whose elements differ.
  [[nodiscard]] std::int64_t capacity() const {
    return calls_.shape().kv_heads * std::min(calls_.shape().group(), calls_.shape().head_dim);
  }

  /// Whether the outputs show the last bit of the sum, and what they are then. Errors
  /// (cannot_tell): they do not.
  Result<bool> calibrate() {
    const auto last = static_cast<std::int32_t>(calls_.shape().kv_len - 1);
    const auto seen =
        outputs({{0, -1, last, tiny_score}, {0, -1, last, unit_score}, {-1, -1, last, tiny_score}});
    if (!seen) return seen.error();
    low_ = (*seen)[2];
    high_ = (*seen)[1];
    if (low_ == high_) {
      return Error{ErrorKind::cannot_tell, "results do not show the last bit of the sum"};
    }
    if ((*seen)[0] != low_) {
      return Error{ErrorKind::cannot_tell, "sums keep more than 24 bits"};
    }
    return true;
  }

  Result<std::vector<bool>> answer(const std::vector<AbsorptionProbe>& probes) {
    std::vector<Question> questions;
    questions.reserve(probes.size());
    for (const AbsorptionProbe& probe : probes) {
      questions.push_back({probe.first, probe.second, probe.large, tiny_score});
    }
    const auto seen = outputs(questions);
    if (!seen) return seen.error();
    std::vector<bool> answers;
    answers.reserve(probes.size());
    for (const float one : *seen) {
      if (one != low_ && one != high_) {
        return Error{ErrorKind::cannot_tell, "the sum of p is none of the two that it can be"};
      }
      answers.push_back(one == high_);
    }
    return answers;
  }

 private:
  /// Keys of a row of p; −1: none.
  struct Question {
    std::int32_t first = -1;
    std::int32_t second = -1;
    std::int32_t large = -1;
    double score = 0;  ///< of the first two
  };

  /// The output of the large key's value for each question.
  Result<std::vector<float>> outputs(const std::vector<Question>& questions) {
    std::vector<float> found;
    found.reserve(questions.size());
    for (std::size_t begin = 0; begin < questions.size(); begin += index(capacity())) {
      const std::size_t used = std::min(questions.size() - begin, index(capacity()));
      const auto done = call(std::span(questions).subspan(begin, used), found);
      if (!done) return done.error();
    }
    return found;
  }

  Result<bool> call(std::span<const Question> questions, std::vector<float>& found) {
    const AttentionShape& shape = calls_.shape();
    const std::int64_t dim = shape.head_dim;
    const std::int64_t slots = std::min(shape.group(), dim);  // of a K/V head
    AttentionOperands data = zero_operands(shape);
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const std::int64_t slot = std::min(head % shape.group(), slots - 1);
      for (std::int64_t query = 0; query < shape.query_len; ++query) {
        data.q[index((head * shape.query_len + query) * dim + slot)] = 1;
      }
    }
    for (std::int64_t i = 0; i < shape.kv_heads * slots; ++i) {
      const Question& question = questions[std::min(index(i), questions.size() - 1)];
      const std::int64_t first = i / slots * shape.kv_len * dim;
      for (std::int64_t key = 0; key < shape.kv_len; ++key) {
        double score = filler_score;
        if (key == question.first || key == question.second) score = question.score;
        if (key == question.large) score = 0;
        data.k[index(first + key * dim + i % slots)] = number(score / calls_.layer().scale());
      }
      // Its own column of V, in which the large key alone has a value.
      data.v[index(first + question.large * dim + i % slots)] = 1;
    }
    const auto outputs = calls_.run(std::move(data));
    if (!outputs) return outputs.error();
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      const std::int64_t head = place / slots * shape.group() + place % slots;
      const std::int64_t row = (head + 1) * shape.query_len - 1;
      found.push_back((*outputs)[index(row * dim + place % slots)]);
    }
    return true;
  }

  /// The nearest number of binary32; narrower formats do not come here.
  [[nodiscard]] static float number(double x) { return static_cast<float>(x); }

  AttentionCalls& calls_;
  float low_ = 0;
  float high_ = 0;
};

}  // namespace

Result<WeightFindings> find_weights(AttentionCalls& calls, std::int64_t most_calls,
                                    std::uint64_t seed) {
  WeightFindings found;
  const std::int64_t keys = calls.shape().kv_len;
  if (calls.layer().format != softfloat::binary32) {
    found.why_not = "results of 16 bits do not show the last bit of the sum";
    return found;
  }
  WeightSums sums(calls);
  const auto levels = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(keys)));
  const std::int64_t expected = 2 * keys * levels / sums.capacity();
  if (expected > most_calls) {
    found.why_not = fmt::format("it would take about {} calls", expected);
    return found;
  }
  const auto fail = [&](const Error& error) -> Result<WeightFindings> {
    if (error.kind != ErrorKind::cannot_tell) return error;
    found.why_not = error.message;
    return found;
  };
  if (keys > 2) {
    const auto shows = sums.calibrate();
    if (!shows) return fail(shows.error());
  }
  const AbsorptionAnswers ask = [&](const std::vector<AbsorptionProbe>& probes) {
    return sums.answer(probes);
  };
  auto tree = absorption_tree(keys, ask, "the sum of p", seed);
  if (!tree) return fail(tree.error());
  found.orders = fit_orders(tree->tree, calls.layer().format);
  found.tree = std::move(tree->tree);
  return found;
}

}  // namespace kvsim::gpu
