// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "run/sim_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "run/arm_arithmetic.h"
#include "run/kept_rows.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "run/repeated_heads.h"
#include "run/rescale_rounding.h"
#include "run/sim_explain.h"
#include "run/sim_launch.h"
#include "run/sim_sequence.h"
#include "run/sim_settings.h"
#include "run/unturned_rope.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

const softfloat::Format& format_of(Dtype dtype) {
  if (dtype == Dtype::bf16) return softfloat::bfloat16;
  if (dtype == Dtype::f16) return softfloat::binary16;
  return softfloat::binary32;
}

class SimArm : public EngineArm, public KeepsRows, public SaysArithmetic {
 public:
  SimArm(ArmSetup setup, IncrementalDecoder decoder, std::string name, DecoderFormats formats)
      : setup_(std::move(setup)),
        decoder_(std::move(decoder)),
        name_(std::move(name)),
        formats_(formats) {}

  std::string dispatch() const override { return name_; }
  const softfloat::Format& logit_format() const override { return formats_.logits; }
  const softfloat::Format& activation_format() const override { return formats_.activations; }
  Result<ArmArithmetic> arithmetic() const override {
    ArmArithmetic result{*setup_.shape, setup_.options.dispatch, formats_,
                         setup_.options.rope_source, setup_.options.plant != Plant::none};
    result.formats.weights = formats_.weights.value_or(setup_.options.storage);
    return result;
  }
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
  bool keeps_rows(std::int64_t before, std::int64_t after, const Launch& launch) const override {
    return setup_.common_rows == CommonRows::kept &&
           is_from_start(launch_of_pass(launch, {0, before, 0})) &&
           is_from_start(launch_of_pass(launch, {0, after, 0})) &&
           decoder_.keeps_rows(before, after);
  }
  Result<std::unique_ptr<EngineSequence>> open(std::int64_t /*capacity*/,
                                               const Launch& launch) const override {
    return open_sequence(setup_, launch);
  }

 private:
  ArmSetup setup_;
  IncrementalDecoder decoder_;  ///< says which rows are kept; sequences have their own
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
  Result<ScoreRule> score_rule(std::int64_t layer) const override {
    return kvsim::score_rule(shape_, layer);
  }
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
  RepeatedHeads repeated_;
};

Result<std::unique_ptr<EngineArm>> SimEngine::arm(std::span<const ArmSetting> settings) const {
  std::vector<ArmSetting> others(settings.begin(), settings.end());
  const Result<bool> repeats = take_kv_heads(others);
  if (!repeats) return repeats.error();
  Result<SimSettings> read = sim_settings(others, default_dispatch(checkpoint_), rope_origins_);
  if (!read) return read.error();
  if (*repeats) read->name += "+kv-heads=repeated";
  const RepeatedModel* const repeated = *repeats ? &repeated_.of(shape_, weights_) : nullptr;
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
  ArmSetup setup{repeated ? &repeated->shape : &shape_, repeated ? &repeated->weights : &weights_,
                 std::move(options), common_rows_, std::move(rope_origin)};
  // What the decoder refuses is refused before anything is written.
  Result<IncrementalDecoder> decoder = make_decoder(setup);
  if (!decoder) return decoder.error();
  return std::unique_ptr<EngineArm>(std::make_unique<SimArm>(std::move(setup), std::move(*decoder),
                                                             std::move(read->name), *formats));
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
  rope_origins.push_back(unturned_rope());
  return std::unique_ptr<Engine>(
      std::make_unique<SimEngine>(std::move(checkpoint), std::move(model), std::move(*shape),
                                  std::move(*weights), options, rows, std::move(rope_origins)));
}

}  // namespace kvsim
