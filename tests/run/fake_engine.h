// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

/// \file
/// An engine whose results follow from a few integers. Its logits are multiples of 2^−20 that hang
/// on the tokens, and a little on how many rows each pass had, unless the arm is `invariant`.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/engine.h"
#include "softfloat/formats.h"

namespace kvsim::test {

/// A number that looks random, from two.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U + b + 0x632be59bd9b4e019U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// What the tests set and look at.
struct FakeModel {
  std::int64_t vocabulary = 16;
  std::int64_t max_positions = 64;
  std::vector<std::int64_t> stop_tokens;
  std::int64_t fails_at_rows = -1;    ///< a pass that ends there fails …
  std::int64_t fails_for_token = -1;  ///< … where this is the first token
  /// Passes of all sequences, in the order in which they were made; use one thread.
  mutable std::vector<PlanStep> passes;
  mutable std::vector<std::vector<TokenId>> fed;  ///< the tokens of each
  mutable std::vector<Launch> launches;           ///< of each sequence
  mutable std::mutex mutex;
};

class FakeSequence : public EngineSequence {
 public:
  FakeSequence(const FakeModel& model, bool invariant, std::uint64_t noise)
      : model_(model), invariant_(invariant), noise_(noise) {}

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override {
    const std::int64_t rows = step.first_row + step.rows;
    if (std::ssize(tokens) != rows || step.cached_rows != step.first_row ||
        step.cached_rows > std::ssize(rows_)) {
      return Error{ErrorKind::usage, "a pass that fits nothing"};
    }
    if (rows == model_.fails_at_rows && tokens.front() == model_.fails_for_token) {
      return Error{ErrorKind::usage, "this pass fails"};
    }
    {
      const std::lock_guard lock(model_.mutex);
      model_.passes.push_back(step);
      model_.fed.emplace_back(tokens.begin(), tokens.end());
    }
    rows_.resize(static_cast<std::size_t>(step.first_row));
    EnginePass result;
    std::uint64_t text = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto token = static_cast<std::uint64_t>(tokens[static_cast<std::size_t>(row)]);
      text = mix(text, token);
      if (row < step.first_row) continue;
      rows_.push_back(mix(token, invariant_ ? 0 : static_cast<std::uint64_t>(step.rows)));
      if (request.state_digests) {
        result.digests.state.push_back({0, "k", 0, row, std::to_string(rows_.back() % 1000)});
      }
      if (request.state_values) {
        result.values.push_back({0, "k", 0, row, {static_cast<double>(rows_.back() % 1000)}});
      }
    }
    std::uint64_t state = 0;
    for (const std::uint64_t row : rows_) state = mix(state, row);
    if (request.layer_digests) result.digests.layer = {std::to_string(state)};
    for (std::int64_t token = 0; token < model_.vocabulary; ++token) {
      const auto index = static_cast<std::uint64_t>(token);
      const std::uint64_t large = mix(text, index) % (8U << 20U);
      const std::uint64_t small = mix(state, index) % (noise_ + 1);
      result.logits.push_back(static_cast<double>(large + small) * 0x1p-20);
    }
    result.cost = {step.rows * 10};
    result.exp_bounded = step.rows == 1;
    return result;
  }
  StateShape state_shape() const override { return {1, 1, 1, softfloat::binary64}; }
  Result<std::vector<double>> state(const StateBlock& /*block*/) const override {
    return Error{ErrorKind::usage, "no state to read"};
  }
  Result<bool> set_state(const StateBlock& /*block*/,
                         std::span<const double> /*numbers*/) override {
    return Error{ErrorKind::usage, "no state to write"};
  }
  void clear() override { rows_.clear(); }
  Result<std::unique_ptr<EngineSequence>> save() const override {
    auto copy = std::make_unique<FakeSequence>(model_, invariant_, noise_);
    copy->rows_ = rows_;
    return std::unique_ptr<EngineSequence>(std::move(copy));
  }

 private:
  const FakeModel& model_;
  bool invariant_;
  std::uint64_t noise_;
  std::vector<std::uint64_t> rows_;  ///< what is cached
};

class FakeArm : public EngineArm {
 public:
  explicit FakeArm(const FakeModel& model) : model_(model) {}
  bool invariant = false;
  std::uint64_t noise = 1U << 14U;

  std::string dispatch() const override { return invariant ? "invariant" : "usual"; }
  const softfloat::Format& logit_format() const override { return softfloat::binary32; }
  Result<std::vector<ExplainedOperator>> explain(const PlanStep& step,
                                                 const Launch& /*launch*/) const override {
    return std::vector<ExplainedOperator>{{"all", std::to_string(step.rows) + " rows", "", ""}};
  }
  Result<std::unique_ptr<EngineSequence>> open(std::int64_t /*capacity*/,
                                               const Launch& launch) const override {
    {
      const std::lock_guard lock(model_.mutex);
      model_.launches.push_back(launch);
    }
    return std::unique_ptr<EngineSequence>(
        std::make_unique<FakeSequence>(model_, invariant, noise));
  }

 private:
  const FakeModel& model_;
};

class FakeEngine : public Engine {
 public:
  FakeModel fake;

  std::string name() const override { return "fake"; }
  std::string model() const override { return "none"; }
  std::string model_sha256() const override { return std::string(64, '0'); }
  std::string storage() const override { return "binary32"; }
  std::int64_t vocabulary() const override { return fake.vocabulary; }
  std::int64_t max_positions() const override { return fake.max_positions; }
  std::vector<std::int64_t> stop_tokens() const override { return fake.stop_tokens; }
  Result<std::unique_ptr<EngineArm>> arm(std::span<const ArmSetting> settings) const override {
    auto result = std::make_unique<FakeArm>(fake);
    for (const ArmSetting& setting : settings) {
      if (setting.key == "invariant") {
        result->invariant = setting.value == "yes";
      } else if (setting.key == "noise") {
        unsigned bits = 0;
        std::from_chars(setting.value.data(), setting.value.data() + setting.value.size(), bits);
        result->noise = std::uint64_t{1} << bits;
      } else {
        return Error{ErrorKind::usage, "key \"" + setting.key + "\"; accepted: invariant, noise"};
      }
    }
    return std::unique_ptr<EngineArm>(std::move(result));
  }
};

}  // namespace kvsim::test
