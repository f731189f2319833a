// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "run/margin.h"
#include "sim/double_double.h"
#include "sim/exp.h"
#include "sim/inputs.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Streams of sampling are no streams of inputs: those are numbered from 0 or spell words.
constexpr std::uint64_t first_stream = std::uint64_t{1} << 63;

Error usage(std::string_view message) { return {ErrorKind::usage, std::string(message)}; }

/// A kept token with its weight among the kept ones.
struct Weighted {
  std::int64_t token;
  double weight;
};

/// Tokens with their weights e^((logit − largest) ÷ temperature); largest weight first.
std::vector<Weighted> weighted_tokens(std::span<const double> logits, const Sampling& sampling) {
  // Sorting everything is only needed where something is cut off.
  const auto size = static_cast<std::int64_t>(logits.size());
  const std::int64_t count = sampling.top_k > 0 ? std::min(sampling.top_k, size) : size;
  std::vector<TokenLogit> kept;
  if (count < size || sampling.top_p < 1) {
    kept = largest_logits(logits, count);
  } else {
    for (std::int64_t token = 0; token < size; ++token) {
      kept.push_back({token, logits[static_cast<std::size_t>(token)]});
    }
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<Weighted> result;
  for (const TokenLogit& entry : kept) {
    const double exponent = (entry.logit - largest) / sampling.temperature;
    const double weight = exponent < -800 ? 0 : exp_reference(DoubleDouble(exponent)).high;
    result.push_back({entry.token, weight});
  }
  return result;
}

DoubleDouble sum_of_weights(std::span<const Weighted> tokens) {
  DoubleDouble sum;
  for (const Weighted& token : tokens) sum = sum + token.weight;
  return sum;
}

/// Cuts the list, largest first, behind the token that completes the probability.
void keep_top_p(std::vector<Weighted>& tokens, double top_p) {
  const DoubleDouble needed = sum_of_weights(tokens) * top_p;
  DoubleDouble sum;
  for (std::size_t count = 0; count < tokens.size(); ++count) {
    sum = sum + tokens[count].weight;
    if (!(sum < needed)) {
      tokens.resize(count + 1);
      return;
    }
  }
}

}  // namespace

Result<bool> check_sampling(const Sampling& sampling) {
  const double temperature = sampling.temperature;
  if (temperature != 0 && !(temperature >= 0x1p-20 && temperature <= 0x1p20)) {
    return usage(
        fmt::format("temperature {}; accepted: 0 (greedy), or from 2^-20 to 2^20", temperature));
  }
  if (sampling.top_k < 0) {
    return usage(fmt::format("top-k {}; accepted: 0 (all), or a count of tokens", sampling.top_k));
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) {
    return usage(fmt::format("top-p {}; accepted: above 0, at most 1 (all)", sampling.top_p));
  }
  return true;
}

std::string to_text(const Sampling& sampling) {
  constexpr std::string_view ties = "(ties go to the lower index)";
  if (sampling.temperature == 0) return fmt::format("greedy {}", ties);
  std::string text = fmt::format("temperature {}", sampling.temperature);
  if (sampling.top_k > 0) text += fmt::format(", top-k {}", sampling.top_k);
  if (sampling.top_p < 1) text += fmt::format(", top-p {}", sampling.top_p);
  return text + fmt::format(", seed {} {}", sampling.seed, ties);
}

double sampling_uniform(std::uint64_t seed, std::uint64_t prompt, std::uint64_t step) {
  if (mutant_is_on(Mutant::prompts_share_numbers)) prompt /= 2;
  return uniform(seed, first_stream + prompt, step);
}

Result<std::int64_t> sample_token(std::span<const double> logits, const Sampling& sampling,
                                  std::uint64_t prompt, std::uint64_t step) {
  if (const Result<bool> checked = check_sampling(sampling); !checked) return checked.error();
  if (logits.empty()) return usage("no logits; accepted: one number or more");
  for (std::size_t token = 0; token < logits.size(); ++token) {
    if (std::isnan(logits[token]) || logits[token] == infinity) {
      return usage(fmt::format("the logit of token {} is {}; accepted: numbers below +infinity",
                               token, logits[token]));
    }
  }
  const auto best = std::max_element(logits.begin(), logits.end());  // the first of equal ones
  if (*best == -infinity) return usage("every logit is -infinity; accepted: at least one number");
  if (sampling.temperature == 0) return static_cast<std::int64_t>(best - logits.begin());

  std::vector<Weighted> tokens = weighted_tokens(logits, sampling);
  if (sampling.top_p < 1) keep_top_p(tokens, sampling.top_p);
  std::sort(tokens.begin(), tokens.end(),
            [](const Weighted& a, const Weighted& b) { return a.token < b.token; });
  const DoubleDouble target =
      sum_of_weights(tokens) * sampling_uniform(sampling.seed, prompt, step);
  DoubleDouble sum;
  std::int64_t chosen = 0;
  for (const Weighted& token : tokens) {
    if (token.weight == 0) continue;
    sum = sum + token.weight;
    chosen = token.token;
    if (target < sum) break;
  }
  return chosen;
}

}  // namespace kvsim
