// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/pass_check.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace kvsim::decoder {
namespace {

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

Result<bool> check_tokens(const DecoderShape& shape, std::span<const std::int32_t> tokens) {
  if (tokens.empty()) return usage("a pass without tokens; accepted: one or more");
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= shape.vocabulary) {
      return usage(fmt::format("token {}; accepted: 0 to {}", token, shape.vocabulary - 1));
    }
  }
  return true;
}

Result<bool> check_launch(const DecoderPass& pass) {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  constexpr std::int64_t most = std::int64_t{1} << 20;
  const DecoderLaunch& launch = pass.launch;
  if (launch.batch < 1 || launch.batch > most) {
    return usage(fmt::format("a batch of {}; accepted: 1 to {}", launch.batch, most));
  }
  if (launch.rows != 0 && (launch.rows < rows || launch.rows > most)) {
    return usage(
        fmt::format("a launch of {} rows; accepted: 0, or {} to {}", launch.rows, rows, most));
  }
  return true;
}

Result<bool> check_rows(const KvCache& cache, const DecoderPass& pass) {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  if (pass.first_row < 0 || pass.first_row > cache.rows()) {
    return usage(fmt::format("a pass from row {} on; accepted: 0 to {}, the rows of the cache",
                             pass.first_row, cache.rows()));
  }
  if (!pass.positions.empty() && static_cast<std::int64_t>(pass.positions.size()) != rows) {
    return usage(fmt::format("{} positions of {} tokens; accepted: one for each, or none",
                             pass.positions.size(), rows));
  }
  constexpr std::int64_t last_position = std::int64_t{1} << 24;
  for (const std::int64_t position : pass.positions) {
    if (position < 0 || position >= last_position) {
      return usage(fmt::format("position {}; accepted: 0 to {}", position, last_position - 1));
    }
  }
  if (pass.padding < 0 || pass.padding >= pass.first_row + rows) {
    return usage(fmt::format("padding of {} rows; accepted: 0 to {}", pass.padding,
                             pass.first_row + rows - 1));
  }
  return true;
}

Result<bool> check_known_rows(const KvCache& cache, const DecoderPass& pass) {
  if (pass.known_rows == 0) return true;
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  if (pass.known_rows < 0 || pass.known_rows >= rows || pass.known_rows > cache.rows()) {
    return usage(
        fmt::format("{} known rows of {}, {} of them in the cache; accepted: fewer than "
                    "all, in the cache",
                    pass.known_rows, rows, cache.rows()));
  }
  const DecoderLaunch& launch = pass.launch;
  const bool alone =
      launch.batch == 1 && launch.kv_lens.empty() && (launch.rows == 0 || launch.rows == rows);
  if (!alone || pass.first_row != 0 || !pass.positions.empty() || pass.padding != 0 ||
      pass.all_logits) {
    return usage(
        "known rows; accepted: in a pass from row 0 on, without positions, padding, neighbours, "
        "logits of every row");
  }
  return true;
}

}  // namespace

Result<bool> check_replacement(const DecoderShape& shape, const softfloat::Format& activations,
                               ComputedRows rows, const HiddenReplacement& replacement) {
  if (replacement.layer < 0 || replacement.layer >= shape.layers) {
    return usage(fmt::format("a hidden state behind layer {}; accepted: 0 to {}", replacement.layer,
                             shape.layers - 1));
  }
  if (replacement.row < rows.first || replacement.row >= rows.end) {
    return usage(
        fmt::format("a hidden state of row {}; accepted: {} to {}, the rows that the pass "
                    "computes",
                    replacement.row, rows.first, rows.end - 1));
  }
  if (std::ssize(replacement.values) != shape.hidden) {
    return usage(fmt::format("a hidden state of {} numbers; accepted: {}",
                             replacement.values.size(), shape.hidden));
  }
  return check_numbers(activations, replacement.values);
}

Result<bool> check_pass(const DecoderShape& shape, const DecoderFormats& formats,
                        const KvCache& cache, const DecoderPass& pass) {
  Result<bool> done = check_tokens(shape, pass.tokens);
  if (done) done = check_rows(cache, pass);
  if (done) done = check_launch(pass);
  if (done) done = check_known_rows(cache, pass);
  for (const HiddenReplacement& replacement : pass.replaced) {
    if (!done) break;
    done = check_replacement(shape, formats.activations, {pass.known_rows, std::ssize(pass.tokens)},
                             replacement);
  }
  return done;
}

}  // namespace kvsim::decoder
