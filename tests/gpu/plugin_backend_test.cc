// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/plugin_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "gpu/backend.h"
#include "gpu/operators.h"
#include "softfloat/formats.h"
#include "tests/gpu/closed_forms.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string sample = "plugin:" KVSIM_PLUGIN_SAMPLE;
const std::string hostile = "plugin:" KVSIM_PLUGIN_HOSTILE;

TEST(Plugin, TheSampleComputesInTheOrderThatItStates) {
  auto made = make_backend(sample);
  ASSERT_TRUE(made) << made.error().message;
  Backend& backend = **made;
  EXPECT_EQ(backend.name(), sample);
  EXPECT_EQ(backend.operators().size(), 3U);
  // (2^24 + 1) + (1 + 1): the even lane swallows its 1.
  const Tensor x{softfloat::binary32, {4}, {0x1p24F, 1, 1, 1}};
  EXPECT_THAT(backend.run({"sum", {x}, {}})->values, ElementsAre(0x1p24F + 2));
  const Tensor ones{softfloat::binary32, {4}, {1, 1, 1, 1}};
  EXPECT_THAT(backend.run({"dot", {x, ones}, {}})->values, ElementsAre(0x1p24F + 2));
  // The same as the simulator's own lanes(2,1), to the bit.
  for (const test::Case& row : test::product_cases()) {
    const std::string& name = row.call.operation;
    if ((name != "linear" && name != "dot") || row.call.inputs.size() > 2) continue;
    const auto result = backend.run(row.call);
    ASSERT_TRUE(result) << result.error().message;
    test::expect_near(row, *result);
    OperatorCall call = row.call;
    call.attributes = {{"order", "lanes(2,1)"}, {"product", "rounded"}};
    const auto simulated = (*make_backend("sim"))->run(call);
    ASSERT_TRUE(simulated) << simulated.error().message;
    EXPECT_EQ(result->values, simulated->values);
  }
}

TEST(Plugin, TheSampleDescribesItself) {
  auto made = make_backend(sample);
  ASSERT_TRUE(made) << made.error().message;
  const Fingerprint fingerprint = (*made)->fingerprint();
  EXPECT_EQ(fingerprint.value("backend"), "sample");
  EXPECT_EQ(fingerprint.value("version"), "1.0");
  EXPECT_EQ(fingerprint.value("accumulators"), "2");
  EXPECT_TRUE((*made)->set_threads(1));
  EXPECT_EQ((*made)->set_threads(2).error().kind, ErrorKind::unavailable);
  const auto refused = (*made)->run(test::product_case("linear", 2, 3, 4, {8, 24, 127}, true).call);
  EXPECT_THAT(refused.error().message, HasSubstr("linear: the sample adds no bias"));
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
}

/// The message of one line that a broken rule leads to, on loading or on the first call.
std::string message_of(const char* rule, ErrorKind kind) {
  setenv("KVSIM_HOSTILE", rule, 1);
  auto made = make_backend(hostile);
  Error error;
  if (made) {
    const auto result = (*made)->run(test::product_case("dot", 1, 3, 1).call);
    if (result) return "accepted";
    error = result.error();
  } else {
    error = made.error();
  }
  EXPECT_EQ(error.kind, kind) << rule;
  EXPECT_EQ(std::count(error.message.begin(), error.message.end(), '\n'), 0) << rule;
  return error.message;
}

TEST(Plugin, WhatBreaksTheRulesIsNamed) {
  EXPECT_EQ(message_of("", ErrorKind::usage), "accepted");
  struct Broken {
    const char* rule;
    ErrorKind kind;
    const char* words;
  };
  const Broken rows[] = {
      {"refuse", ErrorKind::unavailable, "does not serve version 1"},
      {"version", ErrorKind::unavailable, "its struct has version 2"},
      {"size", ErrorKind::unavailable, "and 8 bytes"},
      {"null-name", ErrorKind::usage, "it has no name"},
      {"name", ErrorKind::usage, "it has no name"},
      {"null-run", ErrorKind::usage, "run is NULL"},
      {"null-operators", ErrorKind::usage, "0 operators"},
      {"none", ErrorKind::usage, "0 operators"},
      {"many", ErrorKind::usage, "18446744073709551615 operators"},
      {"null-operation", ErrorKind::usage, "an operator has no name"},
      {"operation", ErrorKind::usage, "offers 'lineer', which is no operator"},
      {"formats", ErrorKind::usage, "offers dot in no format"},
      {"float13", ErrorKind::usage, "offers dot in 'float13', which is no format"},
      {"count", ErrorKind::file, "gave 0 numbers, and the result [] has 1"},
      {"past", ErrorKind::file, "wrote past the 1 numbers of the result"},
      {"number", ErrorKind::file, "1.0039062 at 0 is no number of bfloat16"},
      {"format", ErrorKind::file, "gave a result in 'float13', which is no format"},
      {"null-format", ErrorKind::file, "gave a result in '', which is no format"},
      {"status", ErrorKind::file, "dot: failed with status 77"},
      {"unavailable", ErrorKind::unavailable, "dot: no such?device"},
  };
  for (const Broken& row : rows) {
    EXPECT_THAT(message_of(row.rule, row.kind), HasSubstr(row.words)) << row.rule;
  }
}

TEST(Plugin, ADescriptionWithoutEndIsCut) {
  for (const char* const rule : {"", "null-value", "threads"}) {
    setenv("KVSIM_HOSTILE", rule, 1);
    auto made = make_backend(hostile);
    ASSERT_TRUE(made) << made.error().message;
    const Fingerprint fingerprint = (*made)->fingerprint();
    EXPECT_LT(fingerprint.entries.size(), 80U);
    EXPECT_EQ(fingerprint.value("again and again"),
              std::string(rule) == "null-value" ? "" : "line?line");
    EXPECT_EQ((*made)->set_threads(2).has_value(), std::string(rule) != "threads");
  }
}

TEST(Plugin, WhatIsNoPlugin) {
  const auto empty = make_backend("plugin:" KVSIM_PLUGIN_EMPTY);
  EXPECT_THAT(empty.error().message, HasSubstr("exports no kvsim_plugin_open"));
  const auto missing = make_backend("plugin:no-such-file.so");
  EXPECT_EQ(missing.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(missing.error().message, HasSubstr("no-such-file.so"));
  const auto text = make_backend("plugin:" KVSIM_SOURCE_DIR "/CMakeLists.txt");
  EXPECT_EQ(text.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(make_backend("plugin").error().message, HasSubstr("needs PATH"));
}

}  // namespace
}  // namespace kvsim::gpu
