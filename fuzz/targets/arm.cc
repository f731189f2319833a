// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The grammar of arms on any text: an arm or one line of error; what is printed reads back equal.
// Its passes never take rows from the cache that no pass before has put there, and end with the
// last row.
#include "run/arm.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/targets/input.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 4000);
  for (const char character : error.message) require(static_cast<unsigned char>(character) >= ' ');
  require(error.kind == kvsim::ErrorKind::usage);
}

void check_plan(const kvsim::Arm& arm, std::int64_t prompt, std::int64_t generated) {
  const auto plan = kvsim::cache_plan(arm, prompt, generated);
  if (!plan) return check_error(plan.error());
  std::int64_t cached = 0;
  for (const kvsim::PlanStep& step : *plan) {
    require(step.rows > 0 && step.first_row == step.cached_rows && step.cached_rows <= cached);
    cached = step.first_row + step.rows;
  }
  require(cached == prompt + generated);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto arm = kvsim::parse_arm(text);
  if (!arm) {
    check_error(arm.error());
    return 0;
  }
  const auto again = kvsim::parse_arm(kvsim::to_text_with_label(*arm));
  require(again.has_value() && *again == *arm);
  for (const std::int64_t prompt : {1, 2, 17}) {
    for (const std::int64_t generated : {0, 1, 9}) check_plan(*arm, prompt, generated);
  }
  return 0;
}
