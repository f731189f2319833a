// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"
#include "run/arm.h"
#include "run/record.h"
#include "run/score_rule.h"
#include "sim/decoder/incremental.h"
#include "sim/decoder/kv_cache.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// What computes a model: the simulator is one engine, a framework another. A run knows only this.
namespace kvsim {

/// On which side the shorter sequences of a batch are filled up to its longest prompt.
enum class Padding : std::uint8_t {
  none,   ///< rows of all sequences stand one after the other
  left,   ///< masked rows before the prompt; positions count from the prompt's first token
  right,  ///< rows behind the prompt, which no token of it sees; the first generated token's row
          ///< takes the place of the first of them
};

/// In what a sequence is computed beside its own rows. Neighbours change which kernel and how many
/// parts are chosen, never what a row adds up.
struct Launch {
  std::int64_t prompt_tokens = 1;             ///< of this sequence: what follows was generated
  std::vector<std::int64_t> neighbours = {};  ///< prompt tokens of each other sequence of the batch
  Padding padding = Padding::none;
  /// Rows of each pass that computes one new token: the token, and drafts behind it that are
  /// rejected and forgotten.
  std::int64_t verify_width = 1;

  friend bool operator==(const Launch&, const Launch&) = default;
};

/// What a pass has to hand back beside logits.
struct PassRequest {
  bool state_digests = false;    ///< of each row of K and V that the pass writes
  bool layer_digests = false;    ///< of the last row's hidden state after each layer
  bool state_values = false;     ///< the rows of K and V that the pass writes
  bool layer_values = false;     ///< the last row's hidden state after each layer
  bool operator_values = false;  ///< what each operator gives of the last row, hidden states too
  /// Hidden states that flow on in place of computed ones; rows count from the step's first.
  std::span<const HiddenReplacement> replaced = {};
};

/// Rows first_row … first_row + rows − 1 of the keys or values of a layer, all heads.
struct StateBlock {
  std::int64_t layer = 0;
  KvPart part = KvPart::key;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;

  friend bool operator==(const StateBlock&, const StateBlock&) = default;
};

/// Sizes of a K/V cache.
struct StateShape {
  std::int64_t layers = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  softfloat::Format format;  ///< of every number

  friend bool operator==(const StateShape&, const StateShape&) = default;
};

/// Numbers of one piece of state: those of StateDigest, with the numbers themselves. Hidden states
/// have the operation "hidden" and head 0; what operators give has the names of OperatorOutput, its
/// layers, and head 0 for all heads together, in the order in which it was computed.
struct StateValues {
  std::int64_t layer = 0;
  std::string operation;
  std::int64_t head = 0;
  std::int64_t position = 0;
  std::vector<double> values;  ///< exact
};

/// What one pass gives.
struct EnginePass {
  std::vector<double> logits;  ///< of the last row, one for each token of the vocabulary, exact
  RecordDigests digests;       ///< those that were requested; never `token`
  std::vector<StateValues> values;
  RecordCost cost;
  bool exp_bounded = false;  ///< an exponential is known within bounds only
};

/// One sequence with its K/V cache. Not shared between threads; several may run at once.
class EngineSequence {
 public:
  EngineSequence() = default;
  EngineSequence(const EngineSequence&) = delete;
  EngineSequence& operator=(const EngineSequence&) = delete;
  virtual ~EngineSequence() = default;

  /// Computes rows step.first_row … of `tokens`, which holds the tokens of rows 0 … first_row +
  /// rows − 1. The cache must hold rows 0 … cached_rows − 1; what it holds behind is forgotten.
  /// Errors (usage): a step that does not fit the tokens, the cache or the capacity; a token that
  /// the vocabulary lacks; what the kernels refuse.
  [[nodiscard]] virtual Result<EnginePass> pass(std::span<const TokenId> tokens,
                                                const PlanStep& step,
                                                const PassRequest& request) = 0;
  [[nodiscard]] virtual StateShape state_shape() const = 0;
  /// The numbers of a block of the cache, [kv_heads][rows][head_dim], exact. Errors (usage): what
  /// the cache does not hold.
  [[nodiscard]] virtual Result<std::vector<double>> state(const StateBlock& block) const = 0;
  /// Puts other numbers in their place. Errors (usage): what the cache does not hold, another count
  /// of numbers, one that is not a number of its format; the cache is then as it was.
  [[nodiscard]] virtual Result<bool> set_state(const StateBlock& block,
                                               std::span<const double> numbers) = 0;
  /// Forgets all rows.
  virtual void clear() = 0;
  /// A copy with the same cache: what it computes has the bits of the original.
  [[nodiscard]] virtual Result<std::unique_ptr<EngineSequence>> save() const = 0;
};

/// One operator of a pass, and what computes it.
struct ExplainedOperator {
  std::string operation;  ///< "attention"
  std::string shape;      ///< "1 query, 129 keys"
  /// KEY=VALUE as --set accepts it: "attention.decode=h100-fa3". Empty where nothing can be set.
  std::string setting;
  std::string detail;  ///< what follows from kernel and shape: order, splits; may be empty

  friend bool operator==(const ExplainedOperator&, const ExplainedOperator&) = default;
};

/// An engine with one arm's settings. Immutable: threads may share it.
class EngineArm {
 public:
  EngineArm() = default;
  EngineArm(const EngineArm&) = delete;
  EngineArm& operator=(const EngineArm&) = delete;
  virtual ~EngineArm() = default;

  /// The dispatch that the record names: a row's name, and behind "+" the lines that were set.
  [[nodiscard]] virtual std::string dispatch() const = 0;
  /// The format that logits are numbers of: units in the last place of margins are those.
  [[nodiscard]] virtual const softfloat::Format& logit_format() const = 0;
  /// The format that hidden states and what operators give are numbers of.
  [[nodiscard]] virtual const softfloat::Format& activation_format() const {
    return logit_format();
  }
  /// What an arm that differs only in how its cache is built, or in its launch, can differ by;
  /// empty where that has no name of its own.
  [[nodiscard]] virtual std::string_view difference() const { return {}; }
  /// What the operators of one layer and of the output do in such a pass of a sequence, in their
  /// order.
  [[nodiscard]] virtual Result<std::vector<ExplainedOperator>> explain(
      const PlanStep& step, const Launch& launch) const = 0;
  /// A new sequence of at most `capacity` tokens. The sequence refers to this arm. Errors (usage).
  [[nodiscard]] virtual Result<std::unique_ptr<EngineSequence>> open(
      std::int64_t capacity, const Launch& launch) const = 0;
};

/// A model on an engine. Immutable: threads may share it.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  [[nodiscard]] virtual std::string name() const = 0;          ///< "sim", "torch-cpu"
  [[nodiscard]] virtual std::string model() const = 0;         ///< as given
  [[nodiscard]] virtual std::string model_sha256() const = 0;  ///< 64 hexadecimal digits
  [[nodiscard]] virtual std::string storage() const = 0;       ///< format of weights and K/V
  [[nodiscard]] virtual std::int64_t vocabulary() const = 0;
  /// Tokens of the longest sequence that the model was made for; 0: it does not say.
  [[nodiscard]] virtual std::int64_t max_positions() const = 0;
  /// Tokens that end a text.
  [[nodiscard]] virtual std::vector<std::int64_t> stop_tokens() const = 0;
  /// How layer 0 … layers − 1 makes its scores. Errors (unavailable): the engine does not say.
  [[nodiscard]] virtual Result<ScoreRule> score_rule(std::int64_t /*layer*/) const {
    return Error{ErrorKind::unavailable, "how scores are made, by engine " + name()};
  }

  /// The engine with these settings, each key once. The arm refers to this engine. Errors (usage)
  /// name key, value and what is accepted.
  [[nodiscard]] virtual Result<std::unique_ptr<EngineArm>> arm(
      std::span<const ArmSetting> settings) const = 0;
};

}  // namespace kvsim
