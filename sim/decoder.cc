// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "sim/decoder/decoder_arm.h"
#include "sim/decoder/layer_weights.h"
#include "sim/decoder/rope_frequencies.h"
#include "sim/ulp.h"

namespace kvsim {
namespace {

using decoder::Buffer;
using decoder::DecoderArm;
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

/// Runs the arms through the layers.
class Runner {
 public:
  explicit Runner(const DecoderOptions& options)
      : options_(options),
        shape_(options.shape),
        weights_(options.seed, options.storage, options.engine),
        layers_(options.layers > 0 ? std::min(options.layers, options.shape.layers)
                                   : options.shape.layers) {}

  Result<DecoderReport> run() {
    Result<bool> done = make_arms();
    if (done) done = start();
    for (std::int64_t layer = 0; done && layer < layers_; ++layer) done = run_layer(layer);
    if (!done) return done.error();
    report_.on_state = to_floats(arm(Arm::on).read(Buffer::hidden, options_.prefix, 1));
    report_.off_state = to_floats(arm(Arm::off).read(Buffer::hidden, options_.prefix, 1));
    for (const auto& each : arms_) report_.exp_bounded = report_.exp_bounded || each->exp_bounded();
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::int64_t tokens() const { return options_.prefix + 1; }
  [[nodiscard]] DecoderArm& arm(Arm which) const { return *arms_[static_cast<std::size_t>(which)]; }

  /// The first of cache-off, cache-on and the dispatch itself that names kernels.
  [[nodiscard]] const Dispatch& element_wise(const Dispatch* own) const {
    for (const Dispatch* each : {options_.off, options_.on}) {
      if (each->arithmetic == DispatchArithmetic::kernels) return *each;
    }
    return *own;
  }

  Result<bool> add_arm(const Dispatch* dispatch, std::vector<decoder::TokenGroup> groups) {
    if (dispatch == nullptr) {
      return Error{ErrorKind::usage,
                   "a decoder without a dispatch; accepted: one for cache-on and "
                   "one for cache-off"};
    }
    decoder::ArmSetup setup{.shape = shape_,
                            .storage = options_.storage,
                            .dispatch = dispatch,
                            .groups = std::move(groups),
                            .decode_attention = options_.decode_attention,
                            .prefill_attention = options_.prefill_attention,
                            .element_wise = &element_wise(dispatch),
                            .attention = options_.attention,
                            .engine = options_.engine};
    Result<std::unique_ptr<DecoderArm>> made = decoder::make_arm(setup);
    if (!made) return made.error();
    arms_.push_back(std::move(*made));
    return true;
  }

  Result<bool> make_arms() {
    if (options_.off == nullptr || options_.on == nullptr) return add_arm(nullptr, {});
    const std::vector<decoder::TokenGroup> together{{0, tokens()}};
    Result<bool> done = add_arm(options_.on, {{0, options_.prefix}, {options_.prefix, 1}});
    if (done) done = add_arm(options_.off, together);
    if (!options_.controls) return done;
    for (const std::string_view name : {"exact", "binary64"}) {
      if (!done) return done;
      const Result<const Dispatch*> control = find_dispatch(name);
      done = control ? add_arm(*control, together) : Result<bool>(control.error());
    }
    return done;
  }

  Result<bool> start() {
    const auto hidden =
        weights_.vector(layers_of_model(), WeightKind::first_hidden, tokens() * shape_.hidden, 0,
                        static_cast<float>(shape_.embedding_scale));
    if (!hidden) return hidden.error();
    for (const auto& each : arms_) each->start(*hidden);
    return true;
  }

  // The first hidden states have a place of their own behind the largest number of layers.
  static std::int64_t layers_of_model() { return std::int64_t{1} << 16; }

  template <class Step>
  Result<bool> on_every_arm(const Step& step) {
    for (const auto& each : arms_) {
      Result<bool> done = step(*each);
      if (!done) return done;
    }
    return true;
  }

  /// `width` elements of a row of `in` share one weight vector.
  Result<bool> norm(std::int64_t layer, WeightKind kind, Buffer in, Buffer out,
                    std::int64_t width) {
    const float center = shape_.norm_weight_plus_one ? 0 : 1;
    const auto weight = weights_.vector(layer, kind, width, center, 0.1F);
    if (!weight) return weight.error();
    return on_every_arm(
        [&](DecoderArm& each) { return each.norm({in, out, width, weight->data()}); });
  }

  Result<bool> linear(std::int64_t layer, WeightKind kind, Buffer in, Buffer out,
                      std::int64_t terms, std::int64_t outputs, bool has_bias) {
    const Result<const float*> matrix = weights_.matrix(layer, kind, terms, outputs);
    if (!matrix) return matrix.error();
    std::vector<float> bias;
    if (has_bias) {
      const auto bias_kind = static_cast<WeightKind>(static_cast<int>(kind) +
                                                     static_cast<int>(WeightKind::query_bias));
      Result<std::vector<float>> drawn = weights_.vector(layer, bias_kind, outputs, 0, 0.1F);
      if (!drawn) return drawn.error();
      bias = std::move(*drawn);
    }
    const decoder::LinearStep step{in,      out,     terms,
                                   outputs, *matrix, has_bias ? bias.data() : nullptr};
    report_.multiply_adds += tokens() * terms * outputs * static_cast<std::int64_t>(arms_.size());
    for (const auto& each : arms_) {
      Result<bool> done = each->linear(step);
      if (!done) return done;
      tell_progress(terms * outputs);
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

  Result<bool> attention(std::int64_t layer) {
    const std::int64_t d = shape_.head_dim;
    const std::int64_t q = shape_.query_heads * d;
    const std::int64_t kv = shape_.kv_heads * d;
    const bool bias = shape_.qkv_bias;
    const std::int64_t hidden = shape_.hidden;
    Result<bool> done =
        norm(layer, WeightKind::attention_norm, Buffer::hidden, Buffer::normed, hidden);
    if (done)
      done = linear(layer, WeightKind::query, Buffer::normed, Buffer::query, hidden, q, bias);
    if (done) done = linear(layer, WeightKind::key, Buffer::normed, Buffer::key, hidden, kv, bias);
    if (done) {
      done = linear(layer, WeightKind::value, Buffer::normed, Buffer::value, hidden, kv, bias);
    }
    if (done && layer == 0) compare_cache();
    if (done && shape_.qk_norm) {
      done = norm(layer, WeightKind::query_norm, Buffer::query, Buffer::query, d);
      if (done) done = norm(layer, WeightKind::key_norm, Buffer::key, Buffer::key, d);
    }
    const decoder::LayerPosition position = decoder::layer_position(shape_, layer);
    if (done) done = on_every_arm([&](DecoderArm& each) { return each.rotate(position); });
    if (done) done = on_every_arm([&](DecoderArm& each) { return each.attend(position); });
    if (done) {
      done = linear(layer, WeightKind::output, Buffer::attended, Buffer::branch, q, hidden,
                    shape_.output_bias);
    }
    return done ? finish_branch(layer, WeightKind::attention_post_norm) : done;
  }

  Result<bool> mlp(std::int64_t layer) {
    const std::int64_t hidden = shape_.hidden;
    const std::int64_t ffn = shape_.ffn;
    const bool bias = shape_.mlp_bias;
    Result<bool> done = norm(layer, WeightKind::mlp_norm, Buffer::hidden, Buffer::normed, hidden);
    if (done)
      done = linear(layer, WeightKind::gate, Buffer::normed, Buffer::gate, hidden, ffn, bias);
    if (done) done = linear(layer, WeightKind::up, Buffer::normed, Buffer::up, hidden, ffn, bias);
    if (done) done = on_every_arm([](DecoderArm& each) { return each.multiply_gate(); });
    if (done)
      done = linear(layer, WeightKind::down, Buffer::gate, Buffer::branch, ffn, hidden, bias);
    return done ? finish_branch(layer, WeightKind::mlp_post_norm) : done;
  }

  Result<bool> finish_branch(std::int64_t layer, WeightKind post_norm) {
    Result<bool> done = true;
    if (shape_.sandwich_norms) {
      done = norm(layer, post_norm, Buffer::branch, Buffer::branch, shape_.hidden);
    }
    if (done) done = on_every_arm([](DecoderArm& each) { return each.add_branch(); });
    return done;
  }

  Result<bool> run_layer(std::int64_t layer) {
    Result<bool> done = attention(layer);
    if (done) done = mlp(layer);
    if (done) report_.layers.push_back(drift(layer));
    return done;
  }

  [[nodiscard]] VectorDifference compare(Buffer buffer, std::int64_t first,
                                         std::int64_t count) const {
    return compare_vectors(options_.storage, to_floats(arm(Arm::on).read(buffer, first, count)),
                           to_floats(arm(Arm::off).read(buffer, first, count)));
  }

  void compare_cache() {
    report_.first_keys = compare(Buffer::key, 0, tokens());
    report_.first_values = compare(Buffer::value, 0, tokens());
  }

  [[nodiscard]] LayerDrift drift(std::int64_t layer) const {
    LayerDrift result;
    result.layer = layer;
    const std::int64_t last = options_.prefix;
    result.on_off = compare(Buffer::hidden, last, 1);
    if (!options_.controls) return result;
    const auto state = [&](Arm which) { return arm(which).read(Buffer::hidden, last, 1); };
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
  std::vector<std::unique_ptr<DecoderArm>> arms_;
  DecoderReport report_;
  std::int64_t finished_ = 0;
};

/// Memory: one matrix, and the rows of each decoder.
Result<bool> check_memory(const DecoderOptions& options) {
  constexpr std::int64_t most_weights = std::int64_t{1} << 28;
  constexpr std::int64_t most_numbers = std::int64_t{1} << 27;
  const DecoderShape& shape = options.shape;
  const std::int64_t query = shape.query_heads * shape.head_dim;
  const std::int64_t largest = shape.hidden * std::max(shape.ffn, query);
  if (largest > most_weights) {
    return Error{
        ErrorKind::usage,
        fmt::format("a weight matrix of {} numbers; accepted: at most {}", largest, most_weights)};
  }
  const std::int64_t row =
      3 * shape.hidden + 2 * query + 2 * shape.kv_heads * shape.head_dim + 2 * shape.ffn;
  if ((options.prefix + 1) * row > most_numbers) {
    return Error{ErrorKind::usage,
                 fmt::format("a prefix of {} in a decoder of this size; accepted: at most {}",
                             options.prefix, most_numbers / row - 1)};
  }
  return true;
}

}  // namespace

Result<DecoderReport> run_decoder(const DecoderOptions& options) {
  const Result<bool> check = check_shape(options.shape);
  if (!check) return check.error();
  constexpr std::int64_t longest = std::int64_t{1} << 20;
  if (options.prefix < 1 || options.prefix > longest || options.layers < 0) {
    return Error{ErrorKind::usage,
                 fmt::format("a decoder of prefix {} and {} layers; accepted: a prefix of 1 to {}, "
                             "layers from 0 (all)",
                             options.prefix, options.layers, longest)};
  }
  const Result<bool> fits = check_memory(options);
  if (!fits) return fits.error();
  return Runner(options).run();
}

}  // namespace kvsim
