// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "run/operator_values.h"
#include "run/sim_launch.h"
#include "run/state_block.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

class SimSequence : public EngineSequence {
 public:
  SimSequence(const ArmSetup& setup, Launch launch, IncrementalDecoder decoder, KvCache cache)
      : setup_(setup),
        launch_(std::move(launch)),
        decoder_(std::move(decoder)),
        cache_(std::move(cache)) {}

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override;
  StateShape state_shape() const override {
    return {cache_.layers(), cache_.kv_heads(), cache_.head_dim(), cache_.format()};
  }
  Result<std::vector<double>> state(const StateBlock& block) const override;
  Result<bool> set_state(const StateBlock& block, std::span<const double> numbers) override;
  void clear() override {
    cache_.truncate(0);
    from_start_.clear();
  }
  Result<std::unique_ptr<EngineSequence>> save() const override {
    Result<IncrementalDecoder> decoder = make_decoder(setup_);
    if (!decoder) return decoder.error();
    auto copy = std::make_unique<SimSequence>(setup_, launch_, std::move(*decoder), cache_);
    copy->from_start_ = from_start_;
    return std::unique_ptr<EngineSequence>(std::move(copy));
  }

 private:
  [[nodiscard]] std::int64_t known_rows(const PassLaunch& launch,
                                        std::span<const TokenId> tokens) const;
  void add_state(const PlanStep& step, const PassRequest& request, EnginePass& result) const;
  /// Rows of the cache before the sequence's own.
  [[nodiscard]] std::int64_t padding() const { return launch_of_pass(launch_, {0, 1, 0}).padding; }

  const ArmSetup& setup_;
  Launch launch_;
  IncrementalDecoder decoder_;
  KvCache cache_;
  /// The tokens of a pass from row 0 on that left the cache as it is, nothing beside it.
  std::vector<TokenId> from_start_;
};

/// Rows of a pass from the start that the pass before it left with the bits that this one gives.
std::int64_t SimSequence::known_rows(const PassLaunch& launch,
                                     std::span<const TokenId> tokens) const {
  const bool extends = setup_.common_rows == CommonRows::kept && is_from_start(launch) &&
                       !from_start_.empty() && from_start_.size() < tokens.size() &&
                       std::equal(from_start_.begin(), from_start_.end(), tokens.begin());
  const std::int64_t rows = std::ssize(from_start_);
  return extends && decoder_.keeps_rows(rows, std::ssize(tokens)) ? rows : 0;
}

/// The tokens of a pass with its padding in front and its drafts behind. What they are changes
/// nothing: no row that counts sees them.
std::vector<TokenId> tokens_of(std::span<const TokenId> tokens, const PlanStep& step,
                               const PassLaunch& launch) {
  const std::span<const TokenId> own = tokens.subspan(static_cast<std::size_t>(step.first_row));
  std::vector<TokenId> all(static_cast<std::size_t>(launch.rows) - own.size() -
                           static_cast<std::size_t>(launch.drafts));
  all.insert(all.end(), own.begin(), own.end());
  all.insert(all.end(), static_cast<std::size_t>(launch.drafts), own.back());
  return all;
}

void SimSequence::add_state(const PlanStep& step, const PassRequest& request,
                            EnginePass& result) const {
  const std::int64_t padding = this->padding();
  for (std::int64_t layer = 0; layer < cache_.layers(); ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      const char* const name = part == KvPart::key ? "k" : "v";
      for (std::int64_t position = step.first_row; position < step.first_row + step.rows;
           ++position) {
        std::vector<float> row;
        if (request.state_values) row = cache_.read(layer, part, position + padding, 1);
        for (std::int64_t head = 0; head < cache_.kv_heads(); ++head) {
          if (request.state_digests) {
            result.digests.state.push_back({layer, name, head, position,
                                            cache_.digest(layer, part, head, position + padding)});
          }
          if (!request.state_values) continue;
          const auto begin = row.begin() + head * cache_.head_dim();
          result.values.push_back(
              {layer, name, head, position, {begin, begin + cache_.head_dim()}});
        }
      }
    }
  }
}

Result<std::vector<double>> SimSequence::state(const StateBlock& block) const {
  const std::int64_t before = padding();
  if (const Result<bool> checked = check_block(state_shape(), cache_.rows() - before, block);
      !checked) {
    return checked.error();
  }
  return cache_.read_double(block.layer, block.part, block.first_row + before, block.rows);
}

Result<bool> SimSequence::set_state(const StateBlock& block, std::span<const double> numbers) {
  const std::int64_t before = padding();
  Result<bool> done = check_block(state_shape(), cache_.rows() - before, block);
  if (done) done = check_block_numbers(state_shape(), block, numbers);
  if (!done) return done;
  from_start_.clear();
  std::vector<double> rows = row_major(state_shape(), block, numbers);
  if (mutant_is_on(Mutant::patches_miss_last_row)) {
    rows.resize(rows.size() - rows.size() / static_cast<std::size_t>(block.rows));
  }
  cache_.write(block.layer, block.part, block.first_row + before, std::span<const double>(rows));
  return true;
}

Result<EnginePass> SimSequence::pass(std::span<const TokenId> tokens, const PlanStep& step,
                                     const PassRequest& request) {
  if (step.rows < 1 || step.first_row + step.rows != std::ssize(tokens)) {
    return Error{ErrorKind::usage,
                 fmt::format("a pass over rows {} to {} of {} tokens; accepted: the last rows",
                             step.first_row, step.first_row + step.rows - 1, tokens.size())};
  }
  const PassLaunch launch = launch_of_pass(launch_, step);
  const std::vector<TokenId> pass_tokens = tokens_of(tokens, step, launch);
  std::vector<std::int64_t> positions;
  if (launch.padding > 0) {
    for (std::int64_t row = launch.first; row < launch.first + launch.rows; ++row) {
      positions.push_back(std::max<std::int64_t>(0, row - launch.padding));
    }
  }
  EnginePass result;
  DecoderPass pass;
  pass.known_rows = request.replaced.empty() ? known_rows(launch, tokens) : 0;
  from_start_.clear();
  pass.tokens = pass_tokens;
  pass.first_row = launch.first;
  pass.positions = positions;
  pass.padding = launch.padding;
  pass.launch.batch = std::ssize(launch.kv_lens);
  pass.launch.kv_lens = launch.lengths();
  pass.launch.rows = launch.all_rows;
  pass.all_logits = launch.drafts > 0;
  std::vector<HiddenReplacement> replaced(request.replaced.begin(), request.replaced.end());
  for (HiddenReplacement& each : replaced) each.row += launch.rows - launch.drafts - step.rows;
  pass.replaced = replaced;
  if (observes(request)) {
    pass.observer = [&](const OperatorOutput& output) {
      add_operator_values(output, launch.drafts, step.first_row + step.rows - 1, request, result);
    };
  }
  const auto compute = [&] {
    result = {};
    return decoder_.pass(cache_, pass);
  };
  Result<DecoderPassResult> done = compute();
  if (!done && pass.known_rows > 0 && done.error().kind == ErrorKind::cannot_tell) {
    pass.known_rows = 0;  // a value that is not finite reaches the other rows
    done = compute();
  }
  if (!done) return done.error();
  if (is_from_start(launch) && replaced.empty()) from_start_.assign(tokens.begin(), tokens.end());
  result.logits = std::move(done->logits);
  if (pass.all_logits) {
    const auto width = static_cast<std::ptrdiff_t>(setup_.shape->vocabulary);
    const auto last = static_cast<std::ptrdiff_t>(launch.rows - launch.drafts - 1);
    result.logits = {result.logits.begin() + last * width,
                     result.logits.begin() + (last + 1) * width};
    cache_.truncate(launch.first + launch.rows - launch.drafts);
  }
  result.cost.multiply_adds = done->multiply_adds;
  result.exp_bounded = done->exp_bounded;
  if (request.state_digests || request.state_values) add_state(step, request, result);
  return result;
}

}  // namespace

Result<IncrementalDecoder> make_decoder(const ArmSetup& setup) {
  return IncrementalDecoder::make(*setup.shape, *setup.weights, setup.options);
}

Result<std::unique_ptr<EngineSequence>> open_sequence(const ArmSetup& setup, const Launch& launch) {
  Result<IncrementalDecoder> decoder = make_decoder(setup);
  if (!decoder) return decoder.error();
  KvCache cache = decoder->new_cache();
  return std::unique_ptr<EngineSequence>(
      std::make_unique<SimSequence>(setup, launch, std::move(*decoder), std::move(cache)));
}

}  // namespace kvsim
