// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The reader of flip cases on any text: a case or one line of error; what is printed reads back
// equal, and numbers are finite. Cases of few numbers that can be scored are: bounds hold.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/flip/case.h"
#include "fuzz/flip/score.h"
#include "fuzz/targets/input.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 4000);
  for (const char character : error.message) {
    require(static_cast<unsigned char>(character) >= ' ');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto flip_case = kvsim::fuzz::parse_case(text);
  if (!flip_case) {
    check_error(flip_case.error());
    return 0;
  }
  std::size_t numbers = 0;
  for (const auto& tensor : flip_case->tensors) {
    numbers += tensor.size();
    for (const float x : tensor) require(std::isfinite(x));
  }
  const auto again = kvsim::fuzz::parse_case(kvsim::fuzz::to_text(*flip_case));
  require(again.has_value() && *again == *flip_case);
  if (numbers > 256) return 0;
  const auto scorer = kvsim::fuzz::FlipScorer::make(flip_case->shape);
  if (!scorer) {
    check_error(scorer.error());
    return 0;
  }
  const kvsim::fuzz::FlipScore score = scorer->score(*flip_case);
  if (!score.is_finite()) return 0;
  for (const auto& path : score.paths) {
    require(std::abs(path.difference - score.exact) <=
            path.bound + score.reference_error + 0x1p-50 * std::abs(score.exact));
  }
  return 0;
}
