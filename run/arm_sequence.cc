// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/arm_sequence.h"

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace kvsim {
namespace {

/// Pieces of state of a step's passes: where two passes wrote the same one, the later counts. In
/// the order of layer, operation, head and position.
template <class Piece>
class LastWritten {
 public:
  void add(std::vector<Piece> pieces) {
    for (Piece& piece : pieces) {
      const auto key = std::tuple(piece.layer, piece.operation, piece.head, piece.position);
      pieces_.insert_or_assign(key, std::move(piece));
    }
  }
  [[nodiscard]] std::vector<Piece> take() {
    std::vector<Piece> result;
    result.reserve(pieces_.size());
    for (auto& [key, piece] : pieces_) result.push_back(std::move(piece));
    return result;
  }

 private:
  std::map<std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>, Piece> pieces_;
};

}  // namespace

Result<ArmSequence> ArmSequence::open(const EngineArm& engine, const Arm& arm,
                                      std::span<const TokenId> prompt, std::int64_t new_tokens,
                                      const Launch& launch) {
  Result<std::unique_ptr<EngineSequence>> sequence =
      engine.open(std::ssize(prompt) + new_tokens, launch);
  if (!sequence) return sequence.error();
  ArmSequence result;
  result.arm_ = arm;
  result.sequence_ = std::move(*sequence);
  result.fed_.assign(prompt.begin(), prompt.end());
  result.prompt_tokens_ = std::ssize(prompt);
  return result;
}

Result<EnginePass> ArmSequence::next(const PassRequest& request) {
  const std::int64_t generated = std::ssize(fed_) - prompt_tokens_;
  const Result<std::vector<PlanStep>> passes =
      has_begun_ ? next_passes(arm_, prompt_tokens_, generated - 1)
                 : cache_plan(arm_, prompt_tokens_, generated);
  if (!passes) return passes.error();
  has_begun_ = true;
  EnginePass sum;
  LastWritten<StateDigest> digests;
  LastWritten<StateValues> values;
  for (std::size_t i = 0; i < passes->size(); ++i) {
    const PlanStep& pass = (*passes)[i];
    PassRequest of_pass = request;
    if (i + 1 < passes->size()) {
      of_pass.layer_digests = false;
      of_pass.layer_values = false;
      of_pass.operator_values = false;
      of_pass.replaced = {};
    }
    const auto rows = static_cast<std::size_t>(pass.first_row + pass.rows);
    Result<EnginePass> done = sequence_->pass(std::span(fed_).first(rows), pass, of_pass);
    if (!done) return done.error();
    digests.add(std::move(done->digests.state));
    values.add(std::move(done->values));
    sum.cost.multiply_adds += done->cost.multiply_adds;
    sum.exp_bounded = sum.exp_bounded || done->exp_bounded;
    sum.digests = std::move(done->digests);
    sum.logits = std::move(done->logits);
  }
  exp_bounded_ = exp_bounded_ || sum.exp_bounded;
  sum.digests.state = digests.take();
  sum.values = values.take();
  return sum;
}

Result<ArmSequence> ArmSequence::copy() const {
  Result<std::unique_ptr<EngineSequence>> saved = sequence_->save();
  if (!saved) return saved.error();
  ArmSequence result;
  result.arm_ = arm_;
  result.sequence_ = std::move(*saved);
  result.fed_ = fed_;
  result.prompt_tokens_ = prompt_tokens_;
  result.has_begun_ = has_begun_;
  result.exp_bounded_ = exp_bounded_;
  return result;
}

}  // namespace kvsim
