// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/cuda_device.h"
#include "gpu/setting.h"
#include "gpu/torch/decoder.h"
#include "gpu/torch_library.h"
#include "gpu/torch_settings.h"
#include "run/arm_arithmetic.h"
#include "run/launch_settings.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "run/operator_values.h"
#include "run/repeated_heads.h"
#include "run/sim_launch.h"
#include "run/state_block.h"
#include "sim/decoder/attention_plan.h"
#include "sim/decoder/explain.h"
#include "sim/decoder/number_digest.h"
#include "sim/decoder/pass_check.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// The multiply-adds of a pass, as the simulator counts them: those of linear layers, and of the
/// scores that the mask leaves.
std::int64_t multiply_adds(const DecoderShape& shape, std::int64_t rows, std::int64_t end,
                           std::int64_t head_rows) {
  std::int64_t sum = head_rows * shape.hidden * shape.vocabulary;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    decoder::AttentionPlan plan;
    plan.queries = rows;
    plan.keys = end;
    plan.window = shape.windowed(i) ? shape.window : 0;
    sum += rows * shape.layer_weights() +
           2 * decoder::planned_scores(plan) * shape.query_heads * shape.head_dim;
  }
  return sum;
}

/// What a sequence needs of its arm.
struct ArmSetup {
  const DecoderShape& shape;
  std::shared_ptr<const TorchModel> model;
  TorchSettings settings;
  bool on_cuda = false;
};

class EngineSequenceOnTorch : public EngineSequence {
 public:
  EngineSequenceOnTorch(const ArmSetup& setup, Launch launch,
                        std::unique_ptr<TorchSequence> sequence)
      : setup_(setup), launch_(std::move(launch)), sequence_(std::move(sequence)) {}

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override;
  StateShape state_shape() const override {
    return {setup_.shape.layers, setup_.shape.kv_heads, setup_.shape.head_dim,
            setup_.settings.storage};
  }
  Result<std::vector<double>> state(const StateBlock& block) const override {
    const Result<bool> checked = check_block(state_shape(), sequence_->rows(), block);
    if (!checked) return checked.error();
    return sequence_->state(block.layer, block.part, block.first_row, block.rows);
  }
  Result<bool> set_state(const StateBlock& block, std::span<const double> numbers) override {
    Result<bool> done = check_block(state_shape(), sequence_->rows(), block);
    if (done) done = check_block_numbers(state_shape(), block, numbers);
    if (!done) return done;
    return sequence_->set_state(block.layer, block.part, block.first_row, numbers);
  }
  void clear() override { sequence_->truncate(0); }
  Result<std::unique_ptr<EngineSequence>> save() const override {
    return std::unique_ptr<EngineSequence>(
        std::make_unique<EngineSequenceOnTorch>(setup_, launch_, sequence_->copy()));
  }

 private:
  [[nodiscard]] Result<bool> check(std::span<const TokenId> tokens, const PlanStep& step) const;
  void add_state(const PlanStep& step, const PassRequest& request, EnginePass& result) const;

  const ArmSetup& setup_;
  Launch launch_;
  std::unique_ptr<TorchSequence> sequence_;
};

Result<bool> EngineSequenceOnTorch::check(std::span<const TokenId> tokens,
                                          const PlanStep& step) const {
  if (step.rows < 1 || step.first_row < 0 || step.first_row + step.rows != std::ssize(tokens)) {
    return Error{ErrorKind::usage,
                 fmt::format("a pass over rows {} to {} of {} tokens; accepted: the last rows",
                             step.first_row, step.first_row + step.rows - 1, tokens.size())};
  }
  if (sequence_->rows() < step.first_row) {
    return Error{ErrorKind::usage,
                 fmt::format("a pass from row {} with {} rows in the cache; accepted: from row 0 "
                             "to {}",
                             step.first_row, sequence_->rows(), sequence_->rows())};
  }
  for (const TokenId token : tokens) {
    if (token < 0 || token >= setup_.shape.vocabulary) {
      return Error{ErrorKind::usage,
                   fmt::format("token {}; accepted: 0 to {}", token, setup_.shape.vocabulary - 1)};
    }
  }
  return true;
}

void EngineSequenceOnTorch::add_state(const PlanStep& step, const PassRequest& request,
                                      EnginePass& result) const {
  const std::int64_t width = setup_.shape.head_dim;
  const bool wide = setup_.settings.storage == softfloat::binary64;
  for (std::int64_t layer = 0; layer < setup_.shape.layers; ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      const char* const name = part == KvPart::key ? "k" : "v";
      const std::vector<double> all =
          sequence_->state(layer, part, step.first_row, step.rows);  // [kv_heads][rows][head_dim]
      for (std::int64_t row = 0; row < step.rows; ++row) {
        const std::int64_t position = step.first_row + row;
        for (std::int64_t head = 0; head < setup_.shape.kv_heads; ++head) {
          const std::span<const double> numbers =
              std::span(all).subspan(static_cast<std::size_t>((head * step.rows + row) * width),
                                     static_cast<std::size_t>(width));
          if (request.state_digests) {
            result.digests.state.push_back(
                {layer, name, head, position, decoder::number_digest(numbers, wide)});
          }
          if (request.state_values) {
            result.values.push_back(
                {layer, name, head, position, {numbers.begin(), numbers.end()}});
          }
        }
      }
    }
  }
}

Result<EnginePass> EngineSequenceOnTorch::pass(std::span<const TokenId> tokens,
                                               const PlanStep& step, const PassRequest& request) {
  if (const Result<bool> checked = check(tokens, step); !checked) return checked.error();
  const std::int64_t drafts = launch_of_pass(launch_, step).drafts;
  std::vector<std::int32_t> rows(tokens.begin() + static_cast<std::ptrdiff_t>(step.first_row),
                                 tokens.end());
  rows.insert(rows.end(), static_cast<std::size_t>(drafts), tokens.back());
  const std::int64_t last = step.rows - 1;  // the row that counts
  EnginePass result;
  for (const HiddenReplacement& replacement : request.replaced) {
    const Result<bool> checked = decoder::check_replacement(setup_.shape, setup_.settings.storage,
                                                            {0, step.rows}, replacement);
    if (!checked) return checked.error();
  }
  TorchPass pass{.tokens = rows, .all_logits = drafts > 0, .replaced = request.replaced};
  if (observes(request)) {
    pass.every_operator = request.operator_values;
    pass.observer = [&](const OperatorOutput& output) {
      add_operator_values(output, drafts, step.first_row + last, request, result);
    };
  }
  sequence_->truncate(step.first_row);
  Result<std::vector<double>> logits = sequence_->pass(pass);
  if (!logits) return logits.error();
  result.logits = std::move(*logits);
  if (drafts > 0) {
    const std::ptrdiff_t width = setup_.shape.vocabulary;
    result.logits = {result.logits.begin() + last * width,
                     result.logits.begin() + (last + 1) * width};
    sequence_->truncate(step.first_row + step.rows);
  }
  const std::int64_t computed = std::ssize(rows);
  result.cost.multiply_adds =
      multiply_adds(setup_.shape, computed, step.first_row + computed, drafts > 0 ? computed : 1);
  if (request.state_digests || request.state_values) add_state(step, request, result);
  return result;
}

Result<bool> check_launch(const Launch& launch) {
  if (launch.neighbours.empty() && launch.padding == Padding::none) return true;
  return Error{ErrorKind::usage,
               fmt::format("a batch of {} sequences, padding {}; libtorch accepts one sequence, "
                           "without padding",
                           launch.neighbours.size() + 1, to_string(launch.padding))};
}

class TorchArm : public EngineArm, public SaysArithmetic {
 public:
  explicit TorchArm(ArmSetup setup) : setup_(std::move(setup)) {}

  std::string dispatch() const override { return setup_.settings.name; }
  const softfloat::Format& logit_format() const override { return setup_.settings.storage; }
  Result<std::vector<ExplainedOperator>> explain(const PlanStep& step,
                                                 const Launch& launch) const override;
  Result<ArmArithmetic> arithmetic() const override;
  Result<std::unique_ptr<EngineSequence>> open(std::int64_t /*capacity*/,
                                               const Launch& launch) const override {
    if (const Result<bool> checked = check_launch(launch); !checked) return checked.error();
    return std::unique_ptr<EngineSequence>(std::make_unique<EngineSequenceOnTorch>(
        setup_, launch, setup_.model->open(setup_.settings.attention, setup_.settings.threads)));
  }

 private:
  ArmSetup setup_;
};

Result<std::vector<ExplainedOperator>> TorchArm::explain(const PlanStep& step,
                                                         const Launch& launch) const {
  if (const Result<bool> checked = check_launch(launch); !checked) return checked.error();
  // Operators and shapes are those of the model, under any dispatch.
  const Result<DispatchChoice> any = DispatchChoice::named("fp32");
  if (!any) return any.error();
  const PassLaunch pass = launch_of_pass(launch, step);
  const auto choices = operator_choices(setup_.shape, *any, setup_.settings.storage,
                                        {.cached = pass.first, .rows = pass.rows});
  if (!choices) return choices.error();
  const std::string_view attention = to_string(setup_.settings.attention);
  std::vector<ExplainedOperator> list;
  list.reserve(choices->size() + 1);
  for (const OperatorChoice& choice : *choices) {
    const bool attends =
        choice.operation.starts_with("attention (") || choice.operation == "attention";
    list.push_back({choice.operation, choice.shape,
                    attends ? fmt::format("attention={}", attention) : std::string(), ""});
  }
  list.push_back({"weights, hidden states, K and V, logits", "",
                  fmt::format("storage={}", softfloat::format_name(setup_.settings.storage)), ""});
  return list;
}

Result<ArmArithmetic> TorchArm::arithmetic() const {
  // cuBLAS and its attention are not known by name: those of that device stand for them.
  Result<DispatchChoice> dispatch = DispatchChoice::named(setup_.on_cuda ? "h100" : "torch-cpu");
  if (!dispatch) return dispatch.error();
  DecoderFormats formats;
  formats.activations = setup_.settings.storage;
  formats.kv = setup_.settings.storage;
  formats.logits = setup_.settings.storage;
  return ArmArithmetic{setup_.shape, std::move(*dispatch), formats};
}

class TorchEngine : public Engine {
 public:
  TorchEngine(std::string_view name, Checkpoint checkpoint, std::string model, DecoderShape shape,
              DecoderWeights weights, std::function<MakeTorchModel> make)
      : name_(name),
        checkpoint_(std::move(checkpoint)),
        model_(std::move(model)),
        sha256_(checkpoint_.identity()),
        shape_(std::move(shape)),
        weights_(std::move(weights)),
        make_(std::move(make)),
        repeated_config_(checkpoint_.config()) {
    repeated_config_.kv_heads = repeated_config_.query_heads;
  }

  std::string name() const override { return name_; }
  std::string model() const override { return model_; }
  std::string model_sha256() const override { return sha256_; }
  std::string storage() const override {
    return std::string(softfloat::format_name(weights_.embedding.format));
  }
  std::int64_t vocabulary() const override { return shape_.vocabulary; }
  std::int64_t max_positions() const override { return checkpoint_.config().max_positions; }
  std::vector<std::int64_t> stop_tokens() const override { return checkpoint_.config().eos; }
  Result<ScoreRule> score_rule(std::int64_t layer) const override {
    return kvsim::score_rule(shape_, layer);
  }
  Result<std::unique_ptr<EngineArm>> arm(std::span<const ArmSetting> settings) const override;

 private:
  /// The model in a format, made once; with a copy of the K/V head for every query head.
  [[nodiscard]] Result<std::shared_ptr<const TorchModel>> in(const softfloat::Format& storage,
                                                             bool repeats) const;

  [[nodiscard]] bool on_cuda() const { return name_ == torch_cuda_engine_name; }

  std::string name_;
  Checkpoint checkpoint_;
  std::string model_;
  std::string sha256_;
  DecoderShape shape_;
  DecoderWeights weights_;
  std::function<MakeTorchModel> make_;
  mutable std::mutex mutex_;
  ModelConfig repeated_config_;
  RepeatedHeads repeated_;
  /// By format, and whether heads are repeated.
  mutable std::map<std::pair<std::string_view, bool>, std::shared_ptr<const TorchModel>> models_;
};

Result<std::shared_ptr<const TorchModel>> TorchEngine::in(const softfloat::Format& storage,
                                                          bool repeats) const {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<const TorchModel>& model = models_[{softfloat::format_name(storage), repeats}];
  if (model) return model;
  Result<std::unique_ptr<TorchModel>> made = std::unique_ptr<TorchModel>();
  const ModelConfig& config = repeats ? repeated_config_ : checkpoint_.config();
  const DecoderWeights& weights = repeats ? repeated_.of(shape_, weights_).weights : weights_;
  make_({&config, &weights, storage, on_cuda(), current_setting().onednn}, made);
  if (!made) return made.error();
  model = std::move(*made);
  return model;
}

Result<std::unique_ptr<EngineArm>> TorchEngine::arm(std::span<const ArmSetting> settings) const {
  std::vector<ArmSetting> others(settings.begin(), settings.end());
  const Result<bool> repeats = take_kv_heads(others);
  if (!repeats) return repeats.error();
  Result<TorchSettings> read =
      torch_settings(others, {.storage = weights_.embedding.format,
                              .has_soft_cap = shape_.attention_soft_cap > 0,
                              .on_cuda = on_cuda()});
  if (!read) return read.error();
  if (const SettingRow& setting = current_setting(); setting.name != setting_rows().front().name) {
    read->name += fmt::format("+setting={}", setting.name);
  }
  if (*repeats) read->name += "+kv-heads=repeated";
  const DecoderShape& shape = *repeats ? repeated_.of(shape_, weights_).shape : shape_;
  Result<std::shared_ptr<const TorchModel>> model = in(read->storage, *repeats);
  if (!model) return model.error();
  return std::unique_ptr<EngineArm>(
      std::make_unique<TorchArm>(ArmSetup{shape, std::move(*model), std::move(*read), on_cuda()}));
}

}  // namespace

Result<std::unique_ptr<Engine>> make_torch_engine(std::string_view name, Checkpoint checkpoint,
                                                  std::string model) {
  if (name == torch_cuda_engine_name) {
    if (const auto device = find_cuda_device(); !device) {
      return Error{device.error().kind, fmt::format("{}: {}", name, device.error().message)};
    }
  }
  auto make = torch_function<MakeTorchModel>(name, make_torch_model_name);
  if (!make) return make.error();
  Result<DecoderShape> shape = decoder_shape(checkpoint.config());
  if (!shape) return shape.error();
  Result<DecoderWeights> weights = decoder_weights(checkpoint);
  if (!weights) return weights.error();
  return std::unique_ptr<Engine>(
      std::make_unique<TorchEngine>(name, std::move(checkpoint), std::move(model),
                                    std::move(*shape), std::move(*weights), std::move(*make)));
}

}  // namespace kvsim::gpu
