// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "run/margin.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// What a run leaves behind: one JSON line per prompt, one per (prompt, arm, step), and one per
/// step of two arms that were compared while all their logits were at hand. Every engine writes the
/// same lines (docs/schema/kvsim.record.2.json), so that their records can be joined. Equal runs
/// give equal bytes: time, host and threads are no part of them.
namespace kvsim {

/// The schema that this version writes and reads.
inline constexpr std::string_view record_schema = "kvsim.record/2";

/// How many of the largest logits a step line holds.
inline constexpr std::int64_t record_top_tokens = 20;

/// An arm of the head line.
struct RecordArm {
  std::string label;  ///< what step lines call it
  std::string text;   ///< to_text() of the arm
  std::string dispatch;

  friend bool operator==(const RecordArm&, const RecordArm&) = default;
};

/// What ran, the same in every head line of a file.
struct RecordRun {
  std::string version;  ///< of the program
  std::string engine;   ///< "sim", "torch-cpu", "torch-cuda"
  std::string model;    ///< name or folder, as given
  std::string model_sha256;
  std::string storage;   ///< format of weights and K/V
  std::string sampling;  ///< to_text() of the rule
  std::uint64_t seed = 0;
  std::int64_t max_new_tokens = 0;
  bool teacher_forced = false;  ///< every arm is fed the first arm's tokens
  std::vector<RecordArm> arms;

  friend bool operator==(const RecordRun&, const RecordRun&) = default;
};

/// The head line of one prompt.
struct PromptRecord {
  std::int64_t prompt = 0;  ///< from 0
  std::vector<std::int64_t> prompt_ids;
  RecordRun run;

  friend bool operator==(const PromptRecord&, const PromptRecord&) = default;
};

/// One of the largest logits.
struct RecordTop {
  std::int64_t id = 0;
  double logit = 0;
  double logprob = 0;  ///< natural logarithm of the probability over the whole vocabulary

  friend bool operator==(const RecordTop&, const RecordTop&) = default;
};

/// The digest of one piece of state: the rows of K or V, or another operator's output, of one head
/// in one layer.
struct StateDigest {
  std::int64_t layer = 0;
  std::string operation;  ///< "k", "v"
  std::int64_t head = 0;
  std::int64_t position = 0;  ///< of the (first) token
  std::string digest;

  friend bool operator==(const StateDigest&, const StateDigest&) = default;
};

/// Digests at the four levels; a level that was not recorded is empty.
struct RecordDigests {
  std::vector<StateDigest> state;
  std::vector<std::string> layer;  ///< hidden state of the last row after each layer
  std::vector<std::string> route;  ///< chosen experts of each layer
  std::string token;               ///< all logits that chose the token

  friend bool operator==(const RecordDigests&, const RecordDigests&) = default;
};

/// What a step cost.
struct RecordCost {
  std::int64_t multiply_adds = 0;

  friend bool operator==(const RecordCost&, const RecordCost&) = default;
};

/// One step of one arm of one prompt.
struct StepRecord {
  std::int64_t prompt = 0;
  std::string arm;
  std::int64_t step = 0;         ///< from 0: the first generated token
  std::int64_t token = 0;        ///< the chosen one
  double logprob = 0;            ///< of the token, which need not be among the largest
  std::vector<RecordTop> top;    ///< largest logit first, lower index first among equals
  std::optional<Margin> margin;  ///< of the two largest; none where fewer than two are finite
  RecordDigests digests;
  RecordCost cost;

  friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

/// How far two arms are apart at one step, from all logits. Written by a run of two or more arms,
/// for its first arm against each other one.
struct ComparisonRecord {
  std::int64_t prompt = 0;
  std::string first;  ///< labels of arms
  std::string second;
  std::int64_t step = 0;
  /// Both were fed the same tokens before. Otherwise the numbers compare two texts, and must never
  /// be averaged with those that compare arithmetic.
  bool same_context = true;
  std::optional<double> kl;             ///< divergence() of the first from the second; none: +∞
  double js = 0;                        ///< their Jensen–Shannon divergence
  double largest_logit_difference = 0;  ///< largest |difference| of a token's two logits
  std::int64_t differing_logits = 0;    ///< tokens whose two logits are not equal
  /// top_two_error() of the first in the second; none where it has none.
  std::optional<double> top_two_error;

  friend bool operator==(const ComparisonRecord&, const ComparisonRecord&) = default;
};

using RecordLine = std::variant<PromptRecord, StepRecord, ComparisonRecord>;

/// The line, ended by a newline. Keys always come in the same order; numbers are the shortest that
/// read back as the same binary64 value. Numbers must be finite.
[[nodiscard]] std::string to_line(const PromptRecord& record);
[[nodiscard]] std::string to_line(const StepRecord& record);
[[nodiscard]] std::string to_line(const ComparisonRecord& record);
[[nodiscard]] std::string to_line(const RecordLine& record);

/// What a step line says about the logits that chose its token.
struct RecordedLogits {
  double logprob = 0;            ///< of the token; −infinity for an impossible one
  std::vector<RecordTop> top;    ///< the largest finite ones
  std::optional<Margin> margin;  ///< of the first two
};

/// The logits of a whole vocabulary, which are numbers of `storage`, and the chosen token. Errors
/// (usage): those of softmax_normalizer(), and a token that the vocabulary lacks.
[[nodiscard]] Result<RecordedLogits> recorded_logits(std::span<const double> logits,
                                                     std::int64_t token,
                                                     const softfloat::Format& storage);

/// The first 16 hexadecimal digits of the SHA-256 of these numbers' bytes, little-endian; every NaN
/// counts as 0x7fc00000.
[[nodiscard]] std::string digest_of(std::span<const float> values);

/// The same of binary64 numbers; every NaN counts as 0x7ff8000000000000.
[[nodiscard]] std::string digest_of(std::span<const double> values);

}  // namespace kvsim
