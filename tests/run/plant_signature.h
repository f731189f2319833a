// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "run/divergence.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

/// What a planted defect does to a model on one text, told by everything that the decoder computes.
namespace kvsim::test {

/// A model and one text: its first `prompt` tokens at once, the others one by one.
struct PlantSubject {
  DecoderShape shape;
  DecoderWeights weights;
  std::vector<std::int32_t> tokens;
  std::int64_t prompt = 0;
};

/// One defect, and what it takes to see it.
struct PlantCase {
  Plant plant = Plant::none;
  std::int64_t padding = 0;         ///< masked rows in front
  std::int64_t first_position = 0;  ///< of the text's first token
};

/// What one operator gave, row by row.
struct TraceEvent {
  std::int64_t pass = 0;
  std::int64_t layer = 0;
  std::string operation;
  std::int64_t first_row = 0;  ///< of the text; padding is below 0
  std::vector<std::uint64_t> rows;
};

struct Trace {
  std::vector<TraceEvent> events;
  std::vector<std::vector<double>> logits;  ///< by row of the text
};

inline std::uint64_t row_hash(std::span<const double> row) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const double x : row) hash = (hash ^ std::bit_cast<std::uint64_t>(x)) * 0x100000001b3U;
  return hash;
}

/// How the model computes.
struct PlantArm {
  std::string_view dispatch;
  softfloat::Format storage;
};

/// Runs the first tokens of the text in passes of these lengths.
inline Trace trace(const PlantSubject& subject, const PlantArm& arm, const PlantCase& planted,
                   std::span<const std::int64_t> lengths) {
  DecoderArmOptions options{.dispatch = DispatchChoice::named(arm.dispatch).value(),
                            .storage = arm.storage};
  options.plant = planted.plant;
  options.engine.threads = 2;
  auto decoder = IncrementalDecoder::make(subject.shape, subject.weights, options);
  Trace result;
  if (!decoder) {
    ADD_FAILURE() << decoder.error().message;
    return result;
  }
  KvCache cache = decoder->new_cache();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(planted.padding));
  tokens.insert(tokens.end(), subject.tokens.begin(), subject.tokens.end());
  std::int64_t number = 0;
  for (std::int64_t length : lengths) {
    const std::int64_t first = cache.rows();
    if (first == 0) length += planted.padding;
    std::vector<std::int64_t> positions;
    for (std::int64_t row = first; row < first + length; ++row) {
      positions.push_back(std::max<std::int64_t>(0, row - planted.padding) +
                          planted.first_position);
    }
    DecoderPass pass;
    pass.tokens = std::span(tokens).subspan(static_cast<std::size_t>(first),
                                            static_cast<std::size_t>(length));
    pass.first_row = first;
    pass.positions = positions;
    pass.padding = planted.padding;
    pass.all_logits = true;
    pass.observer = [&](const OperatorOutput& output) {
      TraceEvent event{
          number, output.layer, std::string(output.operation), first - planted.padding, {}};
      for (std::int64_t row = 0; row < output.rows; ++row) {
        const auto values = output.values.subspan(static_cast<std::size_t>(row * output.width),
                                                  static_cast<std::size_t>(output.width));
        event.rows.push_back(row_hash(values));
        if (output.operation == "logits" && event.first_row + row >= 0) {
          result.logits.emplace_back(values.begin(), values.end());
        }
      }
      result.events.push_back(std::move(event));
    };
    const auto done = decoder->pass(cache, pass);
    EXPECT_TRUE(done) << done.error().message;
    if (!done) return result;
    ++number;
  }
  return result;
}

/// The passes of `live`: the prompt, then one token after another.
inline std::vector<std::int64_t> live_lengths(const PlantSubject& subject) {
  std::vector<std::int64_t> lengths{subject.prompt};
  lengths.resize(subject.tokens.size() - static_cast<std::size_t>(subject.prompt) + 1, 1);
  return lengths;
}

/// Where two traces of the same passes first differ.
struct TraceDifference {
  bool in_prompt = false;
  std::int64_t layer = 0;
  std::string operation;
  std::int64_t row = 0;

  friend bool operator==(const TraceDifference&, const TraceDifference&) = default;
};

inline std::optional<TraceDifference> first_difference(const Trace& a, const Trace& b) {
  for (std::size_t i = 0; i < std::min(a.events.size(), b.events.size()); ++i) {
    const TraceEvent& x = a.events[i];
    for (std::size_t row = 0; row < x.rows.size(); ++row) {
      // What is computed of padding is seen by no one.
      if (x.first_row + static_cast<std::int64_t>(row) < 0) continue;
      if (x.rows[row] == b.events[i].rows[row]) continue;
      return TraceDifference{x.pass == 0, x.layer, x.operation,
                             x.first_row + static_cast<std::int64_t>(row)};
    }
  }
  return std::nullopt;
}

/// How far the logits of two traces are apart, over all rows.
struct TraceDistance {
  double logits = 0;  ///< largest difference
  double kl = 0;      ///< largest, in nats
};

inline TraceDistance distance_of(const Trace& a, const Trace& b) {
  TraceDistance result;
  EXPECT_EQ(a.logits.size(), b.logits.size());
  for (std::size_t row = 0; row < std::min(a.logits.size(), b.logits.size()); ++row) {
    for (std::size_t i = 0; i < a.logits[row].size(); ++i) {
      result.logits = std::max(result.logits, std::fabs(a.logits[row][i] - b.logits[row][i]));
    }
    result.kl = std::max(result.kl, divergence(a.logits[row], b.logits[row]).value().kl);
  }
  return result;
}

inline double largest_logit(const Trace& trace) {
  double largest = 0;
  for (const auto& row : trace.logits) {
    for (const double x : row) largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

/// By what a defect is told apart from every other one.
struct PlantSignature {
  std::optional<TraceDifference> first;    ///< of the text as it is run
  std::optional<std::int64_t> token_wise;  ///< first row that changes when no pass has two rows
  std::int64_t reach = 0;  ///< first row whose attention in layer 0 the prompt's last token moves
  double largest_logit = 0;

  /// Without the size.
  [[nodiscard]] auto structure(double cap) const {
    const TraceDifference none{false, -2, "", 0};
    const TraceDifference& at = first ? *first : none;
    return std::tuple(at.in_prompt, at.layer, at.operation, at.row, token_wise.value_or(-1), reach,
                      cap > 0 && largest_logit > cap);
  }
};

/// Traces without a defect, each computed once.
class CleanTraces {
 public:
  explicit CleanTraces(const PlantSubject& subject) : subject_(subject) {}

  const Trace& of(const PlantArm& arm, const PlantCase& planted,
                  const std::vector<std::int64_t>& lengths) {
    const auto [place, is_new] = traces_.try_emplace(
        std::tuple(arm.dispatch, planted.padding, planted.first_position, lengths));
    if (is_new) {
      place->second =
          trace(subject_, arm, {Plant::none, planted.padding, planted.first_position}, lengths);
    }
    return place->second;
  }

 private:
  const PlantSubject& subject_;
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t, std::vector<std::int64_t>>,
           Trace>
      traces_;
};

/// `with` is the text as it is run; its first `rows` rows are run token by token.
inline PlantSignature signature_of(const PlantSubject& subject, const PlantArm& arm,
                                   const PlantCase& planted, std::int64_t rows, const Trace& with,
                                   CleanTraces& clean) {
  const std::vector<std::int64_t> single(static_cast<std::size_t>(rows), 1);
  PlantSignature result;
  result.first = first_difference(clean.of(arm, planted, live_lengths(subject)), with);
  result.largest_logit = largest_logit(with);
  const auto token_wise =
      first_difference(clean.of(arm, planted, single), trace(subject, arm, planted, single));
  if (token_wise) result.token_wise = token_wise->row;
  PlantSubject other = subject;
  std::int32_t& last = other.tokens[static_cast<std::size_t>(subject.prompt) - 1];
  last = last == 1 ? 2 : 1;
  const std::vector<std::int64_t> prompt{subject.prompt};
  Trace before = with;
  Trace after = trace(other, arm, planted, prompt);
  const auto drop = [](Trace& from) {
    std::erase_if(from.events, [](const TraceEvent& event) {
      return event.pass != 0 || event.layer != 0 || event.operation != "attention";
    });
  };
  drop(before);
  drop(after);
  const auto reached = first_difference(before, after);
  result.reach = reached ? reached->row : subject.prompt;
  return result;
}

}  // namespace kvsim::test
