// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/crosscheck/check_data.h"
#include "gpu/crosscheck/crosscheck.h"
#include "gpu/crosscheck/simulated.h"
#include "model/config.h"
#include "run/model_shape.h"
#include "softfloat/formats.h"

/// The operators of a small model, compared and counted.
namespace kvsim::test {

/// The checks of kv-tiny in a format; more keys than a block of attention has are one more check.
inline std::vector<gpu::Check> checks_of(const softfloat::Format& format) {
  const auto config = load_config(KVSIM_SOURCE_DIR "/data/kv-tiny/config.json");
  EXPECT_TRUE(config) << config.error().message;
  const auto shape = decoder_shape(*config);
  EXPECT_TRUE(shape) << shape.error().message;
  std::vector<gpu::Check> checks = gpu::model_checks(*shape, format, {});
  for (const char* const operation : {"sdpa", "eager"}) {
    gpu::Check longer = checks.back();
    longer.operation = operation;
    longer.label = "long decode";
    longer.queries = 1;
    longer.keys = 600;
    checks.push_back(longer);
  }
  gpu::Check odd = checks.front();
  odd.label = "odd sizes";
  odd.outputs = 39;
  odd.terms = 391;
  for (const std::int64_t rows : {1, 2, 7, 64}) {
    odd.rows = rows;
    checks.push_back(odd);
  }
  return checks;
}

inline std::string place_of(const gpu::Check& check, gpu::CheckData data) {
  return fmt::format("{} {} {}, {}, {}", softfloat::format_name(check.format), check.operation,
                     check.label, gpu::size_text(check), gpu::to_string(data));
}

struct Count {
  std::int64_t compared = 0;
  std::int64_t different = 0;
  std::vector<std::string> places;  ///< checks with a difference
};

/// One check, with all data.
inline void add_check(gpu::Backend& backend, gpu::Simulation& simulation, const gpu::Check& check,
                      Count& count) {
  for (const gpu::CheckData data : {gpu::CheckData::gaussian, gpu::CheckData::cancel}) {
    if (!gpu::has_data(check, data)) continue;
    const auto inputs = gpu::check_data(check, data, 1);
    ASSERT_TRUE(inputs);
    const auto outcome =
        gpu::compare_check(backend, simulation, check, *inputs, {.shrinks = false});
    ASSERT_TRUE(outcome) << outcome.error().message;
    count.compared += outcome->compared;
    count.different += outcome->different;
    if (outcome->different > 0) {
      count.places.push_back(fmt::format("{}: {} of {}, {}", place_of(check, data),
                                         outcome->different, outcome->compared, outcome->suspect));
    }
  }
}

/// All checks of an operator.
inline Count count_of(gpu::Backend& backend, gpu::Simulation& simulation,
                      const std::vector<gpu::Check>& checks, std::string_view operation) {
  Count count;
  for (const gpu::Check& check : checks) {
    if (check.operation == operation) add_check(backend, simulation, check, count);
  }
  return count;
}

inline void print(const softfloat::Format& format, std::string_view what, const Count& count) {
  fmt::print("{} {}: {} of {} differ\n", softfloat::format_name(format), what, count.different,
             count.compared);
  for (const std::string& place : count.places) fmt::print("  {}\n", place);
}

}  // namespace kvsim::test
