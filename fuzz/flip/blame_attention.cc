// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "fuzz/flip/attention_errors.h"
#include "fuzz/flip/attention_record.h"
#include "fuzz/flip/blame.h"
#include "fuzz/flip/reference.h"
#include "sim/attention/kernel.h"
#include "sim/ulp.h"

namespace kvsim::fuzz {
namespace {

class AttentionRoundings : public RoundingModel {
 public:
  AttentionRoundings(std::vector<HeadErrors> heads, std::vector<Rounding> roundings)
      : heads_(std::move(heads)), roundings_(std::move(roundings)) {
    const std::vector<char> nothing(roundings_.size());
    computed_.reserve(heads_.size());
    for (const HeadErrors& head : heads_) computed_.push_back(head.share(nothing));
  }

  /// The errors of the logits, as a linear kernel makes them of the outputs.
  void add_logits(const FlipCase& flip_case, std::span<const float> outputs,
                  const std::array<double, 2>& logits, const std::string& kernel) {
    const std::span<const float> tokens(flip_case[CaseTensor::tokens]);
    for (std::size_t token = 0; token < 2; ++token) {
      const DoubleDouble exact =
          exact_dot(outputs, tokens.subspan(token * outputs.size(), outputs.size()));
      const DoubleDouble error = DoubleDouble(logits[token]) - exact;
      const int ulp = ulp_exponent(flip_case.shape.storage, DoubleDouble(logits[token]));
      roundings_.push_back({.place = fmt::format("token {}", token),
                            .step = "logit by " + kernel,
                            .error_ulp = std::ldexp(error.high, -ulp),
                            .number = static_cast<std::int64_t>(token)});
      logits_.push_back(token == 0 ? error : -error);
    }
  }

  [[nodiscard]] std::vector<Rounding> roundings() const override { return roundings_; }

  [[nodiscard]] DoubleDouble difference(const std::vector<char>& exact) const override {
    DoubleDouble sum;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const auto first = exact.begin() + static_cast<std::ptrdiff_t>(heads_[h].first);
      const auto last = exact.begin() + static_cast<std::ptrdiff_t>(heads_[h].last);
      const bool changed = std::any_of(first, last, [](char flag) { return flag != 0; });
      sum = sum + (changed ? heads_[h].share(exact) : computed_[h]);
    }
    const std::size_t first = exact.size() - logits_.size();
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      if (exact[first + i] == 0) sum = sum + logits_[i];
    }
    return sum;
  }

 private:
  std::vector<HeadErrors> heads_;
  std::vector<Rounding> roundings_;
  std::vector<DoubleDouble> computed_;  ///< each head's share with nothing exact
  std::vector<DoubleDouble> logits_;    ///< errors of the logits; empty: exact sums
};

}  // namespace

Result<std::unique_ptr<RoundingModel>> attention_roundings(const FlipScorer& scorer,
                                                           const FlipCase& flip_case,
                                                           std::size_t path) {
  const std::string& name = flip_case.shape.kernels[path].kernel;
  const AttentionKernel* const kernel = find_attention_kernel(name);
  if (kernel == nullptr) {
    return Error{ErrorKind::usage, fmt::format("attention kernel {}: unknown", name)};
  }
  AttentionRecorder recorder;
  const std::vector<float> outputs = scorer.outputs(flip_case, path, SimdLevel::scalar, &recorder);
  std::vector<HeadErrors> heads;
  std::vector<Rounding> roundings;
  heads.reserve(recorder.heads().size());
  const auto head_dim = static_cast<std::size_t>(flip_case.shape.attention.head_dim);
  for (const auto& [number, record] : recorder.heads()) {
    const auto row =
        std::span(outputs).subspan(static_cast<std::size_t>(number) * head_dim, head_dim);
    heads.push_back(head_errors({.flip_case = flip_case,
                                 .kernel = *kernel,
                                 .head = number,
                                 .outputs = row,
                                 .record = record},
                                roundings));
  }
  auto model = std::make_unique<AttentionRoundings>(std::move(heads), std::move(roundings));
  if (const auto logits = scorer.logits(outputs, flip_case, path)) {
    model->add_logits(flip_case, outputs, *logits, flip_case.shape.kernels[path].head);
  }
  return std::unique_ptr<RoundingModel>(std::move(model));
}

}  // namespace kvsim::fuzz
