// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "sim/decoder/layer_walk.h"
#include "sim/decoder/layer_weights.h"
#include "sim/decoder/rope_frequencies.h"
#include "sim/decoder/row_operators.h"
#include "sim/ulp.h"

namespace kvsim {
namespace {

using decoder::Buffer;
using decoder::PassRows;
using decoder::RowOperators;
using decoder::WeightKind;

/// The decoders that run side by side, in this order; the last two only with controls.
enum class Arm : std::size_t { on = 0, off = 1, exact = 2, binary64 = 3 };

std::vector<float> to_floats(const std::vector<double>& x) { return {x.begin(), x.end()}; }

StateError state_error(const softfloat::Format& storage, const std::vector<double>& state,
                       const std::vector<double>& reference) {
  StateError error;
  double difference_squared = 0;
  double state_squared = 0;
  double reference_squared = 0;
  double product = 0;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const double difference = state[i] - reference[i];
    difference_squared += difference * difference;
    state_squared += state[i] * state[i];
    reference_squared += reference[i] * reference[i];
    product += state[i] * reference[i];
    const double ulp = std::ldexp(1.0, ulp_exponent(storage, reference[i]));
    error.max_ulp = std::max(error.max_ulp, std::fabs(difference) / ulp);
  }
  error.l2 = std::sqrt(difference_squared);
  if (reference_squared > 0) error.relative_l2 = std::sqrt(difference_squared / reference_squared);
  if (reference_squared > 0 && state_squared > 0) {
    error.cosine = product / (std::sqrt(reference_squared) * std::sqrt(state_squared));
  }
  return error;
}

/// One way to compute the decoder: passes over its tokens in increasing order, and the cache of the
/// layer that is being computed.
struct DecoderArm {
  std::vector<PassRows> rows;
  std::vector<std::unique_ptr<RowOperators>> passes;
  KvCache cache;

  [[nodiscard]] std::vector<double> read(Buffer buffer) const {
    std::vector<double> all;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const std::vector<double> part = passes[i]->read(buffer, 0, rows[i].count);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
  /// Of the last token.
  [[nodiscard]] std::vector<double> read_last(Buffer buffer) const {
    return passes.back()->read(buffer, rows.back().count - 1, 1);
  }
};

/// Runs the arms through the layers.
class Runner : public decoder::LayerSteps {
 public:
  explicit Runner(const DecoderOptions& options)
      : options_(options),
        shape_(options.shape),
        weights_(options.seed, options.formats.weights.value_or(options.storage), options.engine),
        layers_(options.layers > 0 ? std::min(options.layers, options.shape.layers)
                                   : options.shape.layers) {}

  Result<DecoderReport> run() {
    Result<bool> done = make_arms();
    if (done) done = start();
    for (layer_ = 0; done && layer_ < layers_; ++layer_) {
      position_ = decoder::layer_position(shape_, layer_);
      done = decoder::walk_layer(shape_, *this);
      if (done) done = add_common();
      if (done) report_.layers.push_back(drift());
    }
    if (!done) return done.error();
    report_.on_state = to_floats(arm(Arm::on).read_last(Buffer::hidden));
    report_.off_state = to_floats(arm(Arm::off).read_last(Buffer::hidden));
    for (const DecoderArm& each : arms_) {
      for (const auto& pass : each.passes) {
        report_.exp_bounded = report_.exp_bounded || pass->exp_bounded();
      }
    }
    return std::move(report_);
  }

  /// `width` elements of a row of `in` share one weight vector.
  Result<bool> norm(WeightKind kind, Buffer in, Buffer out, std::int64_t width) override {
    const auto factor = static_cast<float>(norm_factor(kind));
    const float center = shape_.norm_weight_plus_one ? factor - 1 : factor;
    const auto weight = weights_.vector(layer_, kind, width, center, 0.1F * factor);
    if (!weight) return weight.error();
    Result<bool> done = on_every_pass(
        [&](RowOperators& pass) { return pass.norm({in, out, width, weight->data()}); });
    if (kind == WeightKind::attention_post_norm) branches_.attention = branch_size();
    if (kind == WeightKind::mlp_post_norm) branches_.mlp = branch_size();
    return done;
  }

  Result<bool> linear(WeightKind kind, Buffer in, Buffer out, bool has_bias) override {
    const std::int64_t terms = decoder::buffer_width(shape_, in);
    const std::int64_t outputs = decoder::buffer_width(shape_, out);
    const double factor = linear_factor(kind);
    const Result<const float*> matrix = weights_.matrix(layer_, kind, terms, outputs, factor);
    if (!matrix) return matrix.error();
    std::vector<float> bias;
    if (has_bias) {
      Result<std::vector<float>> drawn = weights_.vector(layer_, decoder::bias_of(kind), outputs, 0,
                                                         0.1F * static_cast<float>(factor));
      if (!drawn) return drawn.error();
      bias = std::move(*drawn);
    }
    const decoder::LinearStep step{.in = in,
                                   .out = out,
                                   .terms = terms,
                                   .outputs = outputs,
                                   .weights = *matrix,
                                   .by_outputs = false,
                                   .format = options_.formats.weights.value_or(options_.storage),
                                   .bias = has_bias ? bias.data() : nullptr};
    report_.multiply_adds += tokens() * terms * outputs * static_cast<std::int64_t>(arms_.size());
    for (const DecoderArm& each : arms_) {
      for (const auto& pass : each.passes) {
        Result<bool> done = pass->linear(step);
        if (!done) return done;
      }
      tell_progress(terms * outputs);
    }
    if (kind == WeightKind::output) branches_.attention = branch_size();
    if (kind == WeightKind::down) branches_.mlp = branch_size();
    return true;
  }

  void projected() override {
    if (layer_ != 0) return;
    report_.first_keys = compare(arm(Arm::on).read(Buffer::key), arm(Arm::off).read(Buffer::key));
    report_.first_values =
        compare(arm(Arm::on).read(Buffer::value), arm(Arm::off).read(Buffer::value));
  }

  Result<bool> rotate() override {
    return on_every_pass([&](RowOperators& pass) { return pass.rotate(position_); });
  }

  Result<bool> attend() override {
    for (DecoderArm& each : arms_) {
      each.cache.truncate(0);
      each.cache.extend(tokens());
      for (const auto& pass : each.passes) {
        const decoder::CacheLayer cache{&each.cache, 0};
        Result<bool> done = pass->store(cache);
        if (done) done = pass->attend(position_, cache);
        if (!done) return done;
      }
    }
    return true;
  }

  Result<bool> multiply_gate() override {
    return on_every_pass([](RowOperators& pass) { return pass.multiply_gate(); });
  }

  Result<bool> add_branch() override {
    return on_every_pass([](RowOperators& pass) { return pass.add_branch(); });
  }

 private:
  [[nodiscard]] std::int64_t tokens() const { return options_.prefix + 1; }
  [[nodiscard]] const DecoderArm& arm(Arm which) const {
    return arms_[static_cast<std::size_t>(which)];
  }

  /// The layer's factors.
  [[nodiscard]] BranchSizes factors() const {
    if (options_.branch_factors.empty()) return {};
    return options_.branch_factors[static_cast<std::size_t>(layer_)];
  }
  [[nodiscard]] double norm_factor(WeightKind kind) const {
    if (kind == WeightKind::attention_post_norm) return factors().attention;
    return kind == WeightKind::mlp_post_norm ? factors().mlp : 1;
  }
  [[nodiscard]] double linear_factor(WeightKind kind) const {
    if (shape_.sandwich_norms) return 1;
    if (kind == WeightKind::output) return factors().attention;
    return kind == WeightKind::down ? factors().mlp : 1;
  }
  /// Adds what is the same for every row, rounded once.
  Result<bool> add_common() {
    const auto size = static_cast<float>(factors().common);
    if (size <= 0) return true;
    const auto common = weights_.vector(layer_, WeightKind::common, shape_.hidden, 0, size);
    if (!common) return common.error();
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      const bool is_wide = i == static_cast<std::size_t>(Arm::binary64);
      for (std::size_t j = 0; j < arms_[i].passes.size(); ++j) {
        for (std::int64_t row = 0; row < arms_[i].rows[j].count; ++row) {
          Result<bool> done = add_to_row(*arms_[i].passes[j], row, *common, is_wide);
          if (!done) return done;
        }
      }
    }
    return true;
  }
  Result<bool> add_to_row(RowOperators& pass, std::int64_t row, const std::vector<float>& common,
                          bool is_wide) {
    std::vector<double> hidden = pass.read(Buffer::hidden, row, 1);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += static_cast<double>(common[i]);
    if (!is_wide) {
      std::vector<float> stored = to_floats(hidden);
      const Result<bool> done =
          round_values(options_.storage, stored, stored, options_.engine.level);
      if (!done) return done;
      hidden.assign(stored.begin(), stored.end());
    }
    pass.replace_hidden(row, hidden);
    return true;
  }
  /// Root mean square of what cache-on is about to add.
  [[nodiscard]] double branch_size() const {
    double sum = 0;
    const std::vector<double> branch = arm(Arm::on).read_last(Buffer::branch);
    for (const double x : branch) sum += x * x;
    return std::sqrt(sum / static_cast<double>(branch.size()));
  }

  /// The first of cache-off, cache-on and the dispatch itself that names kernels.
  [[nodiscard]] const Dispatch& element_wise(const Dispatch* own) const {
    for (const Dispatch* each : {options_.off, options_.on}) {
      if (each->arithmetic == DispatchArithmetic::kernels) return *each;
    }
    return *own;
  }

  Result<bool> add_arm(const Dispatch* dispatch, std::vector<PassRows> rows) {
    if (dispatch == nullptr) {
      return Error{ErrorKind::usage,
                   "a decoder without a dispatch; accepted: one for cache-on and "
                   "one for cache-off"};
    }
    const softfloat::Format format = dispatch->arithmetic == DispatchArithmetic::binary64
                                         ? softfloat::binary64
                                         : options_.storage;
    // The two controls have this storage and nothing else that is narrow.
    const DispatchFormats narrow = arms_.size() < 2 ? options_.formats : DispatchFormats{};
    const softfloat::Format kv = narrow.kv.value_or(format);
    const decoder::OperatorSetup setup{
        .shape = shape_,
        .formats = {.weights = {},
                    .operands = narrow.operands,
                    .accumulator = narrow.accumulator,
                    .activations = format,
                    .kv = kv,
                    .logits = format},
        .dispatch = *dispatch,
        .decode_attention = options_.decode_attention,
        .prefill_attention = options_.prefill_attention,
        .element_wise = &element_wise(dispatch),
        .attention = options_.attention,
        .engine = options_.engine,
        .rope_source = format == options_.storage ? options_.rope_source : RopeSource()};
    DecoderArm made{std::move(rows), {}, KvCache(1, shape_.kv_heads, shape_.head_dim, kv)};
    for (const PassRows& pass : made.rows) {
      Result<std::unique_ptr<RowOperators>> operators = decoder::make_operators(setup);
      if (!operators) return operators.error();
      (*operators)->begin(pass);
      made.passes.push_back(std::move(*operators));
    }
    arms_.push_back(std::move(made));
    return true;
  }

  static std::vector<PassRows> passes_of(const std::vector<std::int64_t>& given,
                                         const std::vector<std::int64_t>& usual) {
    std::vector<PassRows> passes;
    std::int64_t first = 0;
    for (const std::int64_t count : given.empty() ? usual : given) {
      passes.push_back({.first = first, .count = count});
      first += count;
    }
    return passes;
  }

  Result<bool> make_arms() {
    if (options_.off == nullptr || options_.on == nullptr) return add_arm(nullptr, {});
    const std::vector<PassRows> together{{.first = 0, .count = tokens()}};
    Result<bool> done = add_arm(options_.on, passes_of(options_.on_passes, {options_.prefix, 1}));
    if (done) done = add_arm(options_.off, passes_of(options_.off_passes, {tokens()}));
    if (!options_.controls) return done;
    for (const std::string_view name : {"exact-sums", "binary64"}) {
      if (!done) return done;
      const Result<const Dispatch*> control = find_dispatch(name);
      done = control ? add_arm(*control, together) : Result<bool>(control.error());
    }
    return done;
  }

  Result<bool> start() {
    const auto drawn =
        weights_.vector(layers_of_model(), WeightKind::first_hidden, tokens() * shape_.hidden, 0,
                        static_cast<float>(shape_.embedding_scale));
    if (!drawn) return drawn.error();
    const std::vector<double> hidden(drawn->begin(), drawn->end());
    for (const DecoderArm& each : arms_) {
      for (std::size_t i = 0; i < each.passes.size(); ++i) {
        const PassRows& rows = each.rows[i];
        each.passes[i]->start(
            std::span(hidden).subspan(static_cast<std::size_t>(rows.first * shape_.hidden),
                                      static_cast<std::size_t>(rows.count * shape_.hidden)));
      }
    }
    return true;
  }

  // The first hidden states have a place of their own behind the largest number of layers.
  static std::int64_t layers_of_model() { return std::int64_t{1} << 16; }

  template <class Step>
  Result<bool> on_every_pass(const Step& step) {
    for (const DecoderArm& each : arms_) {
      for (const auto& pass : each.passes) {
        Result<bool> done = step(*pass);
        if (!done) return done;
      }
    }
    return true;
  }

  void tell_progress(std::int64_t multiplied) {
    if (!options_.progress) return;
    finished_ += multiplied;
    const auto all =
        static_cast<double>(shape_.layer_weights() * layers_) * static_cast<double>(arms_.size());
    options_.progress(static_cast<double>(finished_) / all);
  }

  [[nodiscard]] VectorDifference compare(const std::vector<double>& on,
                                         const std::vector<double>& off) const {
    return compare_vectors(options_.storage, to_floats(on), to_floats(off));
  }

  [[nodiscard]] LayerDrift drift() const {
    LayerDrift result;
    result.layer = layer_;
    result.branches = branches_;
    const auto state = [&](Arm which) { return arm(which).read_last(Buffer::hidden); };
    result.on_off = compare(state(Arm::on), state(Arm::off));
    if (!options_.controls) return result;
    const auto error = [&](Arm which, Arm reference) {
      return state_error(options_.storage, state(which), state(reference));
    };
    result.on_accumulation = error(Arm::on, Arm::exact);
    result.off_accumulation = error(Arm::off, Arm::exact);
    result.storage = error(Arm::exact, Arm::binary64);
    result.on_total = error(Arm::on, Arm::binary64);
    result.off_total = error(Arm::off, Arm::binary64);
    return result;
  }

  const DecoderOptions& options_;
  const DecoderShape& shape_;
  decoder::LayerWeights weights_;
  std::int64_t layers_;
  std::int64_t layer_ = 0;
  decoder::LayerPosition position_;
  BranchSizes branches_;
  std::vector<DecoderArm> arms_;
  DecoderReport report_;
  std::int64_t finished_ = 0;
};

}  // namespace

Result<DecoderReport> run_decoder(const DecoderOptions& options) {
  const Result<bool> check = check_decoder(options);
  if (!check) return check.error();
  return Runner(options).run();
}

}  // namespace kvsim
