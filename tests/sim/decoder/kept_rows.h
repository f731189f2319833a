// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/decoder/incremental.h"
#include "sim/dispatch.h"
#include "tests/sim/decoder/tiny_model.h"

/// Passes from the start, computed whole and with the rows that the pass before left.
namespace kvsim::test {

/// Everything that a pass leaves: logits, the last row's hidden states, K and V of every row.
struct Trace {
  std::vector<double> logits;
  std::vector<double> hidden;
  std::vector<float> state;

  friend bool operator==(const Trace&, const Trace&) = default;
};

/// K and V of the first `rows` rows, all layers.
inline std::vector<float> state_of(const KvCache& cache, std::int64_t rows) {
  std::vector<float> all;
  for (std::int64_t layer = 0; layer < cache.layers(); ++layer) {
    for (const KvPart part : {KvPart::key, KvPart::value}) {
      const std::vector<float> numbers = cache.read(layer, part, 0, rows);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
  }
  return all;
}

/// A pass over the first `rows` tokens.
inline Result<DecoderPassResult> pass_from_start(IncrementalDecoder& decoder, KvCache& cache,
                                                 std::int64_t rows, std::int64_t known,
                                                 Trace* trace = nullptr) {
  const std::vector<std::int32_t> tokens = some_tokens(rows, decoder.shape().vocabulary);
  DecoderPass pass;
  pass.tokens = tokens;
  pass.known_rows = known;
  if (trace != nullptr) {
    pass.observer = [&](const OperatorOutput& output) {
      if (output.operation != "hidden") return;
      const auto last = output.values.last(static_cast<std::size_t>(output.width));
      trace->hidden.insert(trace->hidden.end(), last.begin(), last.end());
    };
  }
  Result<DecoderPassResult> result = decoder.pass(cache, pass);
  if (result && trace != nullptr) {
    trace->logits = result->logits;
    trace->state = state_of(cache, rows);
  }
  return result;
}

/// What comparing passes of n − 1 and n rows finds.
struct KeptRows {
  bool kept = false;          ///< as keeps_rows() says
  bool equal_rows = false;    ///< whether K and V of the first n − 1 rows have the same bits
  bool equal_passes = false;  ///< whether the pass with known rows gives what the whole one gives
  bool equal_costs = false;
};

inline KeptRows compare_rows(IncrementalDecoder& decoder, std::int64_t rows) {
  KeptRows found;
  found.kept = decoder.keeps_rows(rows - 1, rows);
  KvCache shorter = decoder.new_cache();
  KvCache longer = decoder.new_cache();
  Trace whole;
  const auto before = pass_from_start(decoder, shorter, rows - 1, 0);
  const auto after = pass_from_start(decoder, longer, rows, 0, &whole);
  EXPECT_TRUE(before && after);
  if (!before || !after) return found;
  found.equal_rows = state_of(shorter, rows - 1) == state_of(longer, rows - 1);
  if (!found.kept) return found;
  Trace reused;
  const auto result = pass_from_start(decoder, shorter, rows, rows - 1, &reused);
  EXPECT_TRUE(result) << result.error().message;
  found.equal_passes = reused == whole;
  found.equal_costs = result && result->multiply_adds == after->multiply_adds;
  return found;
}

/// Compares passes of every length; returns how many rows' passes keep the rows before them.
inline int check_kept_rows(const TinyModel& model, const DecoderArmOptions& options,
                           std::span<const std::int64_t> lengths) {
  IncrementalDecoder decoder = decoder_of(model, options);
  int kept = 0;
  for (const std::int64_t rows : lengths) {
    const KeptRows found = compare_rows(decoder, rows);
    if (!found.kept) continue;
    ++kept;
    EXPECT_TRUE(found.equal_rows) << rows << " rows";
    EXPECT_TRUE(found.equal_passes) << rows << " rows";
    EXPECT_TRUE(found.equal_costs) << rows << " rows";
  }
  return kept;
}

}  // namespace kvsim::test
