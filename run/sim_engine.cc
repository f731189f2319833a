// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "run/model_shape.h"
#include "run/model_weights.h"
#include "run/rescale_rounding.h"
#include "run/sim_explain.h"
#include "run/sim_launch.h"
#include "run/sim_settings.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

const softfloat::Format& format_of(Dtype dtype) {
  if (dtype == Dtype::bf16) return softfloat::bfloat16;
  if (dtype == Dtype::f16) return softfloat::binary16;
  return softfloat::binary32;
}

Result<IncrementalDecoder> make_decoder(const DecoderShape& shape, const DecoderWeights& weights,
                                        const DecoderArmOptions& options) {
  return IncrementalDecoder::make(shape, weights, options);
}

/// What a sequence needs of its arm.
struct ArmSetup {
  const DecoderShape* shape = nullptr;
  const DecoderWeights* weights = nullptr;
  DecoderArmOptions options;
  CommonRows common_rows = CommonRows::kept;
  std::string rope_origin = {};  ///< name; empty: the dispatch's kernel makes the factors
};

class SimSequence : public EngineSequence {
 public:
  SimSequence(const ArmSetup& setup, Launch launch, IncrementalDecoder decoder, KvCache cache)
      : setup_(setup),
        launch_(std::move(launch)),
        decoder_(std::move(decoder)),
        cache_(std::move(cache)) {}

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override;
  void clear() override {
    cache_.truncate(0);
    from_start_.clear();
  }
  Result<std::unique_ptr<EngineSequence>> save() const override {
    Result<IncrementalDecoder> decoder =
        make_decoder(*setup_.shape, *setup_.weights, setup_.options);
    if (!decoder) return decoder.error();
    auto copy = std::make_unique<SimSequence>(setup_, launch_, std::move(*decoder), cache_);
    copy->from_start_ = from_start_;
    return std::unique_ptr<EngineSequence>(std::move(copy));
  }

 private:
  [[nodiscard]] std::int64_t known_rows(const PassLaunch& launch,
                                        std::span<const TokenId> tokens) const;
  void add_state(const PlanStep& step, const PassRequest& request, EnginePass& result) const;

  const ArmSetup& setup_;
  Launch launch_;
  IncrementalDecoder decoder_;
  KvCache cache_;
  /// The tokens of a pass from row 0 on that left the cache as it is, nothing beside it.
  std::vector<TokenId> from_start_;
};

/// Whether a pass begins with row 0 and has nothing beside the sequence's own rows.
bool is_from_start(const PassLaunch& launch) {
  return launch.first == 0 && launch.padding == 0 && launch.drafts == 0 &&
         launch.kv_lens.size() == 1 && launch.all_rows == launch.rows;
}

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
  const std::int64_t padding = launch_of_pass(launch_, step).padding;
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
  pass.known_rows = known_rows(launch, tokens);
  from_start_.clear();
  std::int64_t last = 0;  // of the rows that are computed, the one that counts
  pass.tokens = pass_tokens;
  pass.first_row = launch.first;
  pass.positions = positions;
  pass.padding = launch.padding;
  pass.launch.batch = std::ssize(launch.kv_lens);
  pass.launch.kv_lens = launch.lengths();
  pass.launch.rows = launch.all_rows;
  pass.all_logits = launch.drafts > 0;
  if (request.layer_digests || request.layer_values) {
    pass.observer = [&](const OperatorOutput& output) {
      if (output.operation != "hidden") return;
      const std::span<const double> row = output.values.subspan(
          static_cast<std::size_t>(last * output.width), static_cast<std::size_t>(output.width));
      if (request.layer_digests) result.digests.layer.push_back(digest_of(row));
      if (request.layer_values) {
        result.values.push_back(
            {output.layer, "hidden", 0, step.first_row + step.rows - 1, {row.begin(), row.end()}});
      }
    };
  }
  const auto compute = [&] {
    result = {};
    last = launch.rows - pass.known_rows - launch.drafts - 1;
    return decoder_.pass(cache_, pass);
  };
  Result<DecoderPassResult> done = compute();
  if (!done && pass.known_rows > 0 && done.error().kind == ErrorKind::cannot_tell) {
    pass.known_rows = 0;  // a value that is not finite reaches the other rows
    done = compute();
  }
  if (!done) return done.error();
  if (is_from_start(launch)) from_start_.assign(tokens.begin(), tokens.end());
  result.logits = std::move(done->logits);
  if (pass.all_logits) {
    const auto width = static_cast<std::ptrdiff_t>(setup_.shape->vocabulary);
    result.logits = {result.logits.begin() + last * width,
                     result.logits.begin() + (last + 1) * width};
    cache_.truncate(launch.first + launch.rows - launch.drafts);
  }
  result.cost.multiply_adds = done->multiply_adds;
  result.exp_bounded = done->exp_bounded;
  if (request.state_digests || request.state_values) add_state(step, request, result);
  return result;
}

class SimArm : public EngineArm {
 public:
  SimArm(ArmSetup setup, std::string name, DecoderFormats formats)
      : setup_(std::move(setup)), name_(std::move(name)), formats_(formats) {}

  std::string dispatch() const override { return name_; }
  const softfloat::Format& logit_format() const override { return formats_.logits; }
  std::string_view difference() const override {
    const bool leaves = setup_.options.plant == Plant::none &&
                        leaves_rescale_rounding(setup_.options.dispatch.dispatch());
    return leaves ? rescale_rounding : std::string_view();
  }
  Result<std::vector<ExplainedOperator>> explain(const PlanStep& step,
                                                 const Launch& launch) const override {
    auto list = explain_pass(*setup_.shape, setup_.options.dispatch, formats_,
                             setup_.options.storage, *setup_.weights, launch_of_pass(launch, step));
    if (!list || setup_.rope_origin.empty()) return list;
    for (ExplainedOperator& entry : *list) {
      if (!entry.setting.starts_with("rope=")) continue;
      entry.setting = fmt::format("rope={}", setup_.rope_origin);
      entry.detail = "its factors, as data";
    }
    return list;
  }
  Result<std::unique_ptr<EngineSequence>> open(std::int64_t /*capacity*/,
                                               const Launch& launch) const override {
    Result<IncrementalDecoder> decoder =
        make_decoder(*setup_.shape, *setup_.weights, setup_.options);
    if (!decoder) return decoder.error();
    KvCache cache = decoder->new_cache();
    return std::unique_ptr<EngineSequence>(
        std::make_unique<SimSequence>(setup_, launch, std::move(*decoder), std::move(cache)));
  }

 private:
  ArmSetup setup_;
  std::string name_;
  DecoderFormats formats_;
};

class SimEngine : public Engine {
 public:
  SimEngine(Checkpoint checkpoint, std::string model, DecoderShape shape, DecoderWeights weights,
            const EngineOptions& options, CommonRows rows, std::vector<RopeOrigin> rope_origins)
      : checkpoint_(std::move(checkpoint)),
        model_(std::move(model)),
        sha256_(checkpoint_.identity()),
        shape_(std::move(shape)),
        weights_(std::move(weights)),
        options_(options),
        common_rows_(rows),
        rope_origins_(std::move(rope_origins)) {}

  std::string name() const override { return std::string(sim_engine_name); }
  std::string model() const override { return model_; }
  std::string model_sha256() const override { return sha256_; }
  std::string storage() const override { return std::string(softfloat::format_name(own_format())); }
  std::int64_t vocabulary() const override { return shape_.vocabulary; }
  std::int64_t max_positions() const override { return checkpoint_.config().max_positions; }
  std::vector<std::int64_t> stop_tokens() const override { return checkpoint_.config().eos; }
  Result<std::unique_ptr<EngineArm>> arm(std::span<const ArmSetting> settings) const override;

 private:
  [[nodiscard]] const softfloat::Format& own_format() const {
    return format_of(checkpoint_.find(WeightRole::embedding)->dtype);
  }

  Checkpoint checkpoint_;
  std::string model_;
  std::string sha256_;
  DecoderShape shape_;
  DecoderWeights weights_;
  EngineOptions options_;
  CommonRows common_rows_;
  std::vector<RopeOrigin> rope_origins_;
};

Result<std::unique_ptr<EngineArm>> SimEngine::arm(std::span<const ArmSetting> settings) const {
  Result<SimSettings> read = sim_settings(settings, default_dispatch(checkpoint_), rope_origins_);
  if (!read) return read.error();
  const Result<DecoderFormats> formats = resolve_formats(read->dispatch.dispatch(), own_format());
  if (!formats) return formats.error();
  DecoderArmOptions options{.dispatch = std::move(read->dispatch),
                            .storage = own_format(),
                            .attention = {},
                            .engine = options_,
                            .plant = read->plant};
  std::string rope_origin;
  if (read->rope_origin != nullptr) {
    Result<RopeSource> source = read->rope_origin->open(checkpoint_.config(), formats->activations);
    if (!source) return source.error();
    options.rope_source = std::move(*source);
    rope_origin = read->rope_origin->name;
  }
  ArmSetup setup{&shape_, &weights_, std::move(options), common_rows_, std::move(rope_origin)};
  // What the decoder refuses is refused before anything is written.
  if (const auto made = make_decoder(shape_, weights_, setup.options); !made) return made.error();
  return std::unique_ptr<EngineArm>(
      std::make_unique<SimArm>(std::move(setup), std::move(read->name), *formats));
}

}  // namespace

std::string_view default_dispatch(const Checkpoint& checkpoint) {
  const Weight* const embedding = checkpoint.find(WeightRole::embedding);
  return embedding != nullptr && embedding->dtype == Dtype::f32 ? "fp32" : "h100-fa3";
}

Result<std::unique_ptr<Engine>> make_sim_engine(Checkpoint checkpoint, std::string model,
                                                const EngineOptions& options, CommonRows rows,
                                                std::vector<RopeOrigin> rope_origins) {
  Result<DecoderShape> shape = decoder_shape(checkpoint.config());
  if (!shape) return shape.error();
  Result<DecoderWeights> weights = decoder_weights(checkpoint);
  if (!weights) return weights.error();
  return std::unique_ptr<Engine>(
      std::make_unique<SimEngine>(std::move(checkpoint), std::move(model), std::move(*shape),
                                  std::move(*weights), options, rows, std::move(rope_origins)));
}

}  // namespace kvsim
