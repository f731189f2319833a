// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/decoder_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "gpu/setting.h"
#include "gpu/torch_library.h"
#include "gpu/torch_rope.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "sim/decoder/incremental.h"
#include "sim/decoder/rope_frequencies.h"
#include "sim/decoder/row_operators.h"
#include "sim/operators/rope.h"
#include "sim/philox.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// What one side gave in a pass, operator by operator in the order of the pass.
class Record {
 public:
  struct Entry {
    std::int64_t layer = 0;
    std::string operation;
    std::int64_t width = 1;
    std::vector<double> values;
  };

  void add(const OperatorOutput& output) {
    entries_.push_back({output.layer,
                        std::string(output.operation),
                        output.width,
                        {output.values.begin(), output.values.end()}});
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  /// The n-th entry of that layer and operator, by n.
  [[nodiscard]] std::map<std::tuple<std::int64_t, std::string, int>, const Entry*> index() const {
    std::map<std::tuple<std::int64_t, std::string, int>, const Entry*> found;
    for (const Entry& entry : entries_) {
      int n = 0;
      while (!found.emplace(std::tuple(entry.layer, entry.operation, n), &entry).second) ++n;
    }
    return found;
  }

 private:
  std::vector<Entry> entries_;
};

/// Compares passes and keeps count.
class Comparer {
 public:
  void add(const Record& seen, const Record& simulated) {
    const auto here = simulated.index();
    std::map<std::pair<std::int64_t, std::string>, int> number;
    for (const Record::Entry& entry : seen.entries()) {
      const int n = number[{entry.layer, entry.operation}]++;
      const auto other = here.find({entry.layer, entry.operation, n});
      if (other == here.end() || other->second->values.size() != entry.values.size()) continue;
      compare(entry, *other->second);
    }
    ++outcome_.passes;
  }
  DecoderCheckOutcome& outcome() { return outcome_; }

 private:
  void compare(const Record::Entry& seen, const Record::Entry& simulated) {
    auto totals = std::ranges::find(outcome_.operators, seen.operation, &OperatorTotals::operation);
    if (totals == outcome_.operators.end()) {
      outcome_.operators.push_back({.operation = seen.operation});
      totals = outcome_.operators.end() - 1;
    }
    totals->compared += std::ssize(seen.values);
    for (std::size_t i = 0; i < seen.values.size(); ++i) {
      if (same(seen.values[i], simulated.values[i])) continue;
      ++totals->different;
      if (outcome_.first) continue;
      const auto at = static_cast<std::int64_t>(i);
      outcome_.first = {.pass = outcome_.passes,
                        .layer = seen.layer,
                        .operation = seen.operation,
                        .row = at / seen.width,
                        .column = at % seen.width,
                        .seen = seen.values[i],
                        .simulated = simulated.values[i]};
    }
  }

  DecoderCheckOutcome outcome_;
};

/// The first layer with a window, or without one; −1: there is none.
std::int64_t layer_of(const DecoderShape& shape, bool windowed) {
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    if (shape.windowed(layer) == windowed) return layer;
  }
  return -1;
}

/// Counts the factors that the dispatch's kernel makes otherwise.
Result<bool> compare_rope(const RopeSource& source, const DecoderShape& shape,
                          const Dispatch& dispatch, const DecoderCheckOptions& options,
                          DecoderCheckOutcome& outcome) {
  const RopeKernel* const kernel = find_rope_kernel(dispatch.rope);
  if (kernel == nullptr) return true;
  const std::int64_t positions = options.prefill + options.decode;
  for (const bool windowed : {false, true}) {
    const std::int64_t layer = layer_of(shape, windowed);
    if (layer < 0) continue;
    const auto seen = source(windowed, positions);
    if (!seen) return seen.error();
    const decoder::LayerPosition position = decoder::layer_position(shape, layer);
    const auto made = make_rope_table(*kernel, {.storage = options.storage,
                                                .rotated = shape.head_dim,
                                                .base = position.rope_base,
                                                .positions = positions,
                                                .custom_frequencies = position.custom_frequencies});
    if (!made) return made.error();
    for (const auto field : {&RopeTable::cosine, &RopeTable::sine}) {
      for (std::size_t i = 0; i < (*seen.*field).size(); ++i) {
        ++outcome.rope_compared;
        if (!same((*seen.*field)[i], (*made.*field)[i])) ++outcome.rope_different;
      }
    }
  }
  return true;
}

std::vector<std::int32_t> drawn_tokens(const DecoderCheckOptions& options,
                                       std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(static_cast<std::size_t>(options.prefill));
  for (std::int64_t i = 0; i < options.prefill; ++i) {
    tokens.push_back(
        static_cast<std::int32_t>(philox_bits(options.seed, 0, static_cast<std::uint64_t>(i)) %
                                  static_cast<std::uint64_t>(vocabulary)));
  }
  return tokens;
}

}  // namespace

OperatorTotals DecoderCheckOutcome::totals(std::string_view operation) const {
  const auto found = std::ranges::find(operators, operation, &OperatorTotals::operation);
  return found == operators.end() ? OperatorTotals{.operation = std::string(operation)} : *found;
}

Result<DecoderCheckOutcome> check_decoder(const Checkpoint& checkpoint, DispatchChoice dispatch,
                                          const DecoderCheckOptions& options) {
  const auto make = torch_function<MakeTorchModel>("--end-to-end", make_torch_model_name);
  if (!make) return make.error();
  const auto shape = decoder_shape(checkpoint.config());
  if (!shape) return shape.error();
  const auto weights = decoder_weights(checkpoint);
  if (!weights) return weights.error();
  Result<std::unique_ptr<TorchModel>> model = std::unique_ptr<TorchModel>();
  (*make)({&checkpoint.config(), &*weights, options.storage, false, current_setting().onednn},
          model);
  if (!model) return model.error();
  const std::string_view storage = softfloat::format_name(options.storage);
  for (const std::string_view line : {"format.weights", "format.activations"}) {
    if (const auto set = dispatch.set(line, storage); !set) return set.error();
  }
  DecoderArmOptions arm{.dispatch = dispatch, .storage = options.storage, .engine = options.engine};
  const auto source = torch_rope_source(checkpoint.config(), options.storage);
  if (!source) return source.error();
  if (options.rope_as_data) arm.rope_source = *source;
  auto decoder = IncrementalDecoder::make(*shape, *weights, arm);
  if (!decoder) return decoder.error();
  KvCache cache = decoder->new_cache();
  const auto sequence = (*model)->open(options.attention, 1);
  Comparer comparer;
  const auto rope = compare_rope(*source, *shape, dispatch.dispatch(), options, comparer.outcome());
  if (!rope) return rope.error();
  std::vector<std::int32_t> tokens = drawn_tokens(options, shape->vocabulary);
  std::int64_t first_row = 0;
  for (std::int64_t pass = 0; pass <= options.decode; ++pass) {
    Record seen;
    const auto logits = sequence->pass({.tokens = tokens,
                                        .all_logits = true,
                                        .observer = [&](const auto& output) { seen.add(output); },
                                        .every_operator = true});
    if (!logits) return logits.error();
    Record simulated;
    DecoderPass own;
    own.tokens = tokens;
    own.first_row = first_row;
    own.all_logits = true;
    own.observer = [&](const OperatorOutput& output) { simulated.add(output); };
    const auto done = decoder->pass(cache, own);
    if (!done) return done.error();
    comparer.add(seen, simulated);
    first_row += std::ssize(tokens);
    const auto last = logits->end() - shape->vocabulary;
    tokens = {static_cast<std::int32_t>(std::max_element(last, logits->end()) - last)};
  }
  return std::move(comparer.outcome());
}

}  // namespace kvsim::gpu
