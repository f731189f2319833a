// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/incremental.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "sim/decoder/attention_plan.h"
#include "sim/decoder/kept_rows.h"
#include "sim/decoder/layer_walk.h"
#include "sim/decoder/number_digest.h"
#include "sim/decoder/pass_check.h"
#include "sim/decoder/rope_frequencies.h"
#include "sim/decoder/row_operators.h"
#include "sim/decoder/weight_kinds.h"
#include "softfloat/formats.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

using decoder::Buffer;
using decoder::WeightKind;

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

}  // namespace

/// The decoder, and what one pass needs while it runs.
class IncrementalDecoder::State : public decoder::LayerSteps {
 public:
  State(DecoderShape shape, DecoderWeights weights, const DecoderArmOptions& options,
        const DecoderFormats& formats)
      : shape_(std::move(shape)),
        weights_(std::move(weights)),
        options_(options),
        formats_(formats) {
    positions_.reserve(static_cast<std::size_t>(shape_.layers));
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      positions_.push_back(decoder::layer_position(shape_, i));
    }
  }

  Result<bool> make_operators() {
    setup_ = {.shape = shape_,
              .formats = formats_,
              .dispatch = options_.dispatch.dispatch(),
              .attention = options_.attention,
              .engine = options_.engine,
              .plant = options_.plant,
              .rope_source = options_.rope_source};
    Result<std::unique_ptr<decoder::RowOperators>> made = decoder::make_operators(setup_);
    if (!made) return made.error();
    operators_ = std::move(*made);
    return true;
  }

  [[nodiscard]] const DecoderShape& shape() const { return shape_; }
  [[nodiscard]] const DecoderFormats& formats() const { return formats_; }

  [[nodiscard]] bool keeps_rows(std::int64_t before, std::int64_t after) const {
    return decoder::keeps_rows(setup_, weights_, before, after);
  }

  Result<DecoderPassResult> run(KvCache& cache, const DecoderPass& pass) {
    cache_ = &cache;
    pass_ = &pass;
    result_ = {};
    rows_ = {.first = pass.first_row,
             .count = static_cast<std::int64_t>(pass.tokens.size()),
             .positions = pass.positions,
             .padding = pass.padding,
             .launch = pass.launch,
             .known = pass.known_rows};
    cache.truncate(rows_.first + rows_.known);
    cache.extend(rows_.end());
    operators_->begin(rows_);
    layer_ = -1;
    Result<bool> done = embed();
    for (layer_ = 0; done && layer_ < shape_.layers; ++layer_) {
      done = decoder::walk_layer(shape_, *this);
      if (done) finish_layer();
    }
    if (done) done = head();
    if (!done) {
      cache.truncate(rows_.first);
      return done.error();
    }
    result_.exp_bounded = operators_->exp_bounded();
    return std::move(result_);
  }

  Result<bool> norm(WeightKind kind, Buffer in, Buffer out, std::int64_t width) override {
    Result<bool> done = norm_by(weight_of(layer(), kind), in, out, width);
    if (done) observe(decoder::name_of(kind), out);
    return done;
  }

  Result<bool> linear(WeightKind kind, Buffer in, Buffer out, bool has_bias) override {
    const WeightView& view = weight_of(layer(), kind);
    vector(weight_of(layer(), decoder::bias_of(kind)), has_bias, bias_);
    const decoder::LinearStep step = linear_step(view, in, out, has_bias);
    Result<bool> done = operators_->linear(step);
    result_.multiply_adds += rows_.count * step.terms * step.outputs;
    if (done) observe(decoder::name_of(kind), out);
    return done;
  }

  Result<bool> rotate() override {
    Result<bool> done = operators_->rotate(position());
    if (done) observe("query-rope", Buffer::query);
    if (done) observe("key-rope", Buffer::key);
    return done;
  }

  Result<bool> attend() override {
    const decoder::CacheLayer cache{cache_, layer_};
    Result<bool> done = operators_->store(cache);
    if (done && rows_.known > 0) done = check_new_values();
    if (done) done = operators_->attend(position(), cache);
    const std::int64_t scores =
        decoder::planned_scores(decoder::plan_attention(setup_, rows_, position()));
    result_.multiply_adds += 2 * scores * shape_.query_heads * shape_.head_dim;
    if (done) observe("attention", Buffer::attended);
    return done;
  }

  Result<bool> multiply_gate() override {
    Result<bool> done = operators_->multiply_gate();
    if (done) observe("gate-product", Buffer::gate);
    return done;
  }

  Result<bool> add_branch() override {
    Result<bool> done = operators_->add_branch();
    if (done) observe("residual", Buffer::hidden);
    return done;
  }

 private:
  [[nodiscard]] const DecoderLayerWeights& layer() const {
    return weights_.layers[static_cast<std::size_t>(layer_)];
  }
  [[nodiscard]] const decoder::LayerPosition& position() const {
    return positions_[static_cast<std::size_t>(layer_)];
  }
  [[nodiscard]] bool is_wide() const { return formats_.activations == softfloat::binary64; }

  void observe(std::string_view operation, Buffer buffer) const {
    if (!pass_->observer) return;
    const std::vector<double> values = operators_->read(buffer, 0, rows_.computed());
    pass_->observer(
        {layer_, operation, rows_.computed(), decoder::buffer_width(shape_, buffer), values});
  }

  /// A value that is not finite reaches rows before it, whose probability for it is 0.
  [[nodiscard]] Result<bool> check_new_values() const {
    const std::vector<float> values =
        cache_->read(layer_, KvPart::value, rows_.known, rows_.computed());
    if (std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) return true;
    return Error{ErrorKind::cannot_tell,
                 fmt::format("known rows before a value of layer {} that is not finite", layer_)};
  }

  /// Rounds what was read from a weight to the format that weights are kept in.
  void round_weights(const WeightView& view, std::span<float> numbers) const {
    if (!formats_.weights || joint_format(*formats_.weights, view.format) == *formats_.weights) {
      return;
    }
    static_cast<void>(round_values(*formats_.weights, numbers, numbers, options_.engine.level));
  }

  /// The numbers of a weight of one row; nothing where it is not wanted.
  void vector(const WeightView& view, bool wanted, std::vector<float>& numbers) const {
    numbers.resize(wanted ? static_cast<std::size_t>(view.columns) : 0);
    if (!wanted) return;
    read_weight_rows(view, 0, numbers);
    round_weights(view, numbers);
  }

  Result<bool> norm_by(const WeightView& view, Buffer in, Buffer out, std::int64_t width) {
    vector(view, true, norm_weight_);
    return operators_->norm({in, out, width, norm_weight_.data()});
  }

  /// The matrix where it stands, or rounded in a buffer that the next call overwrites.
  decoder::LinearStep linear_step(const WeightView& view, Buffer in, Buffer out, bool has_bias) {
    decoder::LinearStep step{.in = in,
                             .out = out,
                             .terms = view.columns,
                             .outputs = view.rows,
                             .weights = {},
                             .by_outputs = true,
                             .format = formats_.weights.value_or(view.format),
                             .bias = has_bias ? bias_.data() : nullptr};
    const bool rounds = !(joint_format(step.format, view.format) == step.format);
    const std::optional<NumberPointer> in_place = NumberPointer::of(view.format, view.data);
    if (!rounds && in_place && is_aligned(view)) {
      step.weights = *in_place;
      return step;
    }
    matrix_.resize(std::max(matrix_.size(), static_cast<std::size_t>(view.rows * view.columns)));
    read_weight(view, step.format,
                std::span(matrix_).first(static_cast<std::size_t>(view.rows * view.columns)),
                options_.engine);
    step.weights = matrix_.data();
    return step;
  }

  Result<bool> embed() {
    const std::int64_t width = shape_.hidden;
    std::vector<double> hidden;
    hidden.reserve(static_cast<std::size_t>(rows_.computed() * width));
    std::vector<float> row(static_cast<std::size_t>(width));
    auto scale = static_cast<float>(shape_.embedding_scale);
    const bool scales = shape_.embedding_scale != 1;
    const auto round = [&](std::span<float> numbers) {
      return round_values(formats_.activations, numbers, numbers, options_.engine.level);
    };
    Result<bool> done = true;
    if (scales && !is_wide()) done = round({&scale, 1});
    for (const std::int32_t token : pass_->tokens.subspan(static_cast<std::size_t>(rows_.known))) {
      read_weight_rows(weights_.embedding, token, row);
      round_weights(weights_.embedding, row);
      if (is_wide()) {
        for (const float x : row) {
          hidden.push_back(static_cast<double>(x) * shape_.embedding_scale);
        }
        continue;
      }
      if (done) done = round(row);
      if (done && scales) {
        for (float& x : row) x *= scale;
        done = round(row);
      }
      hidden.insert(hidden.end(), row.begin(), row.end());
    }
    if (!done) return done;
    operators_->start(hidden);
    observe("embedding", Buffer::hidden);
    return true;
  }

  void finish_layer() {
    for (const HiddenReplacement& replacement : pass_->replaced) {
      if (replacement.layer != layer_) continue;
      operators_->replace_hidden(replacement.row - rows_.known, replacement.values);
    }
    observe("hidden", Buffer::hidden);
    if (!pass_->hidden_digests) return;
    result_.hidden_digests.push_back(decoder::number_digest(
        operators_->read(Buffer::hidden, rows_.computed() - 1, 1), is_wide()));
  }

  Result<bool> head() {
    Result<bool> done = norm_by(weights_.final_norm, Buffer::hidden, Buffer::normed, shape_.hidden);
    if (!done) return done;
    observe("final-norm", Buffer::normed);
    const WeightView& output = weights_.output.present() ? weights_.output : weights_.embedding;
    const std::int64_t first = pass_->all_logits ? 0 : rows_.count - 1;
    Result<std::vector<double>> logits =
        operators_->head(linear_step(output, Buffer::normed, Buffer::hidden, false), first);
    if (!logits) return logits.error();
    result_.logits = std::move(*logits);
    result_.multiply_adds += (rows_.count - first) * shape_.hidden * shape_.vocabulary;
    if (pass_->observer) {
      pass_->observer({layer_, "logits", rows_.count - first, shape_.vocabulary, result_.logits});
    }
    return true;
  }

  DecoderShape shape_;
  DecoderWeights weights_;
  DecoderArmOptions options_;
  DecoderFormats formats_;
  decoder::OperatorSetup setup_;
  std::unique_ptr<decoder::RowOperators> operators_;
  std::vector<decoder::LayerPosition> positions_;
  std::vector<float> matrix_;
  std::vector<float> bias_;
  std::vector<float> norm_weight_;
  // Of the pass that is running.
  KvCache* cache_ = nullptr;
  const DecoderPass* pass_ = nullptr;
  decoder::PassRows rows_;
  std::int64_t layer_ = 0;
  DecoderPassResult result_;
};

IncrementalDecoder::IncrementalDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
IncrementalDecoder::IncrementalDecoder(IncrementalDecoder&&) noexcept = default;
IncrementalDecoder& IncrementalDecoder::operator=(IncrementalDecoder&&) noexcept = default;
IncrementalDecoder::~IncrementalDecoder() = default;

Result<IncrementalDecoder> IncrementalDecoder::make(const DecoderShape& shape,
                                                    DecoderWeights weights,
                                                    const DecoderArmOptions& options) {
  Result<bool> done = check_shape(shape);
  if (done) done = check_weights(shape, weights);
  if (!done) return done.error();
  const Result<DecoderFormats> formats =
      resolve_formats(options.dispatch.dispatch(), options.storage);
  if (!formats) return formats.error();
  auto state = std::make_unique<State>(shape, std::move(weights), options, *formats);
  done = state->make_operators();
  if (!done) return done.error();
  return IncrementalDecoder(std::move(state));
}

KvCache IncrementalDecoder::new_cache() const {
  const DecoderShape& shape = state_->shape();
  return {shape.layers, shape.kv_heads, shape.head_dim, state_->formats().kv};
}

bool IncrementalDecoder::keeps_rows(std::int64_t before, std::int64_t after) const {
  return state_->keeps_rows(before, after);
}

const DecoderShape& IncrementalDecoder::shape() const { return state_->shape(); }
const DecoderFormats& IncrementalDecoder::formats() const { return state_->formats(); }

Result<DecoderPassResult> IncrementalDecoder::pass(KvCache& cache, const DecoderPass& pass) {
  const DecoderShape& shape = state_->shape();
  if (cache.layers() != shape.layers || cache.kv_heads() != shape.kv_heads ||
      cache.head_dim() != shape.head_dim || !(cache.format() == state_->formats().kv)) {
    return usage("a cache of another decoder; accepted: one of new_cache()");
  }
  Result<bool> done = decoder::check_pass(shape, state_->formats(), cache, pass);
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  if (done && pass.known_rows > 0 && !keeps_rows(pass.known_rows, rows)) {
    done =
        usage(fmt::format("{} known rows of {}: not kept by this dispatch", pass.known_rows, rows));
  }
  if (!done) {
    cache.truncate(pass.first_row);
    return done.error();
  }
  Result<DecoderPassResult> result = state_->run(cache, pass);
  if (mutant_is_on(Mutant::passes_are_counted) && result) {
    static int passes = 0;
    if (++passes % 5 == 0) result->logits.front() += 1;
  }
  return result;
}

}  // namespace kvsim
