// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "run/engine.h"

/// What must hold of every engine whose state is read and replaced.
namespace kvsim::test {

/// A sequence over tokens that the engine knows, one step before the next token.
class Patient {
 public:
  Patient(const EngineArm& arm, std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {
    auto opened = arm.open(32, {.prompt_tokens = rows()});
    EXPECT_TRUE(opened);
    sequence_ = std::move(*opened);
    EXPECT_TRUE(sequence_->pass(tokens_, {0, rows(), 0}, {}));
    tokens_.push_back(9);
  }

  [[nodiscard]] EngineSequence& sequence() { return *sequence_; }
  [[nodiscard]] std::int64_t rows() const { return std::ssize(tokens_); }
  [[nodiscard]] StateShape shape() const { return sequence_->state_shape(); }

  /// The pass over the next token.
  [[nodiscard]] EnginePass next(std::span<const HiddenReplacement> replaced = {}) {
    const PassRequest request{.layer_values = true, .replaced = replaced};
    const auto pass = sequence_->pass(tokens_, {rows() - 1, 1, rows() - 1}, request);
    EXPECT_TRUE(pass) << pass.error().message;
    return pass ? *pass : EnginePass{};
  }

  /// Takes keys or values of all layers from another sequence, of some heads.
  void take(const Patient& donor, KvPart part, const std::vector<std::int64_t>& heads) {
    const StateShape sizes = shape();
    const std::int64_t held = rows() - 1;
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
      const StateBlock block{layer, part, 0, held};
      const auto theirs = donor.sequence_->state(block);
      auto ours = sequence_->state(block);
      ASSERT_TRUE(theirs && ours);
      const std::int64_t size = held * sizes.head_dim;
      for (const std::int64_t head : heads) {
        std::copy_n(theirs->begin() + head * size, size, ours->begin() + head * size);
      }
      ASSERT_TRUE(sequence_->set_state(block, *ours));
    }
  }

 private:
  std::vector<TokenId> tokens_;
  std::unique_ptr<EngineSequence> sequence_;
};

/// A model of two K/V heads and more than one layer.
inline void check_state_patches(const EngineArm& arm) {
  const std::vector<TokenId> tokens{17, 48, 48, 58, 66, 49};
  const std::vector<TokenId> others{17, 21, 48, 30, 66, 49};
  const auto recipient = [&] { return Patient(arm, tokens); };
  Patient donor(arm, others);
  Patient untouched = recipient();
  ASSERT_EQ(untouched.shape().kv_heads, 2);
  const EnginePass of_donor = donor.next();
  const EnginePass of_recipient = untouched.next();
  ASSERT_NE(of_donor.logits, of_recipient.logits);

  // Its own state changes nothing.
  Patient same = recipient();
  Patient twin = recipient();
  same.take(twin, KvPart::key, {0, 1});
  same.take(twin, KvPart::value, {0, 1});
  std::vector<HiddenReplacement> own;
  for (const StateValues& hidden : of_recipient.values) {
    own.push_back({hidden.layer, 0, hidden.values});
  }
  ASSERT_GT(own.size(), 1U);
  EXPECT_EQ(same.next(own).logits, of_recipient.logits);

  // All keys and values of the donor, with the same next token, make it the donor.
  Patient all = recipient();
  all.take(donor, KvPart::key, {0, 1});
  all.take(donor, KvPart::value, {0, 1});
  EXPECT_EQ(all.next().logits, of_donor.logits);

  // A part of them makes it neither; and what is taken back is gone.
  for (const auto part : {KvPart::key, KvPart::value}) {
    for (const std::vector<std::int64_t>& heads :
         {std::vector<std::int64_t>{0}, std::vector<std::int64_t>{0, 1}}) {
      Patient some = recipient();
      some.take(donor, part, heads);
      const EnginePass mixed = some.next();
      EXPECT_NE(mixed.logits, of_donor.logits);
      EXPECT_NE(mixed.logits, of_recipient.logits);
      some.take(twin, part, heads);
      EXPECT_EQ(some.next().logits, of_recipient.logits);
    }
  }

  // Behind the last layer the hidden state is all that counts; behind the first one it is not.
  for (const StateValues& hidden : of_donor.values) {
    Patient patched = recipient();
    const HiddenReplacement replacement{hidden.layer, 0, hidden.values};
    const EnginePass result = patched.next({&replacement, 1});
    EXPECT_EQ(result.values[static_cast<std::size_t>(hidden.layer)].values, hidden.values);
    if (hidden.layer + 1 == std::ssize(of_donor.values)) {
      EXPECT_EQ(result.logits, of_donor.logits);
    } else {
      EXPECT_NE(result.logits, of_donor.logits);
      EXPECT_NE(result.logits, of_recipient.logits);
    }
  }
}

/// Every refusal says what is accepted, and changes nothing.
inline void check_refused_patches(const EngineArm& arm) {
  Patient patient(arm, {17, 48, 48, 58, 66, 49});
  const EnginePass before = patient.next();
  const StateShape shape = patient.shape();
  EngineSequence& sequence = patient.sequence();
  const std::vector<double> row(static_cast<std::size_t>(shape.kv_heads * shape.head_dim), 0.5);
  const auto refuses = [&](const Result<bool>& result, const char* text) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_THAT(result.error().message, testing::HasSubstr(text));
  };
  refuses(sequence.set_state({shape.layers, KvPart::key, 0, 1}, row), "state of layer");
  refuses(sequence.set_state({-1, KvPart::key, 0, 1}, row), "state of layer -1; accepted: 0 to ");
  refuses(sequence.set_state({0, KvPart::key, 7, 1}, row), "1 rows of state from row 7 on");
  refuses(sequence.set_state({0, KvPart::key, -1, 1}, row), "from row -1 on");
  refuses(sequence.set_state({0, KvPart::key, 0, 0}, {}), "0 rows of state");
  refuses(sequence.set_state({0, KvPart::key, 0, 2}, row), "numbers for 2 heads, 2 rows");
  std::vector<double> odd = row;
  odd.back() = 0.1;  // not a number of a format with fewer bits than binary64
  refuses(sequence.set_state({0, KvPart::key, 0, 1}, odd), "the number 0.1; accepted: numbers of");
  EXPECT_FALSE(sequence.state({0, KvPart::value, 6, 2}));
  EXPECT_EQ(patient.next().logits, before.logits);

  std::vector<double> hidden = before.values.front().values;
  const auto refuses_hidden = [&](const HiddenReplacement& replacement, const char* text) {
    const PassRequest request{.replaced = {&replacement, 1}};
    const std::vector<TokenId> tokens{17, 48, 48, 58, 66, 49, 9};
    const auto result = sequence.pass(tokens, {6, 1, 6}, request);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::usage);
    EXPECT_THAT(result.error().message, testing::HasSubstr(text));
  };
  refuses_hidden({shape.layers, 0, hidden}, "a hidden state behind layer");
  refuses_hidden({0, 1, hidden}, "a hidden state of row 1; accepted: 0 to 0");
  refuses_hidden({0, 0, std::span(hidden).first(3)}, "a hidden state of 3 numbers");
  hidden.front() = 0.1;
  refuses_hidden({0, 0, hidden}, "the number 0.1; accepted: numbers of");
  EXPECT_EQ(patient.next().logits, before.logits);
}

}  // namespace kvsim::test
