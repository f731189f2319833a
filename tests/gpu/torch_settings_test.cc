// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using testing::HasSubstr;

constexpr TorchLimits plain{.storage = softfloat::bfloat16};

TEST(TorchSettings, HaveDefaults) {
  const auto settings = torch_settings({}, plain);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->attention, AttentionFunction::sdpa);
  EXPECT_EQ(settings->storage, softfloat::bfloat16);
  EXPECT_EQ(settings->threads, 1);
  EXPECT_EQ(settings->name, "sdpa");
  // A soft cap of scores: transformers has it in eager attention only.
  const auto capped = torch_settings({}, {.storage = softfloat::bfloat16, .has_soft_cap = true});
  ASSERT_TRUE(capped);
  EXPECT_EQ(capped->attention, AttentionFunction::eager);
}

TEST(TorchSettings, AreRead) {
  const auto settings = torch_settings(
      std::vector<ArmSetting>{{"attention", "sdpa-math"}, {"storage", "float32"}, {"threads", "4"}},
      plain);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->attention, AttentionFunction::sdpa_math);
  EXPECT_EQ(settings->storage, softfloat::binary32);
  EXPECT_EQ(settings->threads, 4);
  EXPECT_EQ(settings->name, "sdpa-math+storage=binary32+threads=4");
  for (const char* name : {"eager", "sdpa", "sdpa-flash", "sdpa-math"}) {
    const auto each = torch_settings(std::vector<ArmSetting>{{"attention", name}}, plain);
    ASSERT_TRUE(each) << name;
    EXPECT_EQ(to_string(each->attention), name);
  }
}

void expect_refused(const ArmSetting& setting, const TorchLimits& limits, const char* says) {
  const auto settings = torch_settings(std::vector<ArmSetting>{setting}, limits);
  ASSERT_FALSE(settings) << setting.key << "=" << setting.value;
  EXPECT_EQ(settings.error().kind, ErrorKind::usage);
  EXPECT_THAT(settings.error().message, HasSubstr(says));
  EXPECT_EQ(settings.error().message.find('\n'), std::string::npos);
}

TEST(TorchSettings, RefuseOthersByName) {
  expect_refused({"attention", "flash"}, plain,
                 "setting attention is \"flash\"; accepted: eager, sdpa, sdpa-flash, sdpa-math");
  expect_refused({"attention", "sdpa"}, {.storage = softfloat::bfloat16, .has_soft_cap = true},
                 "accepted: eager");
  expect_refused({"attention", "sdpa-flash"}, {.storage = softfloat::bfloat16, .on_cuda = true},
                 "accepted: eager, sdpa, sdpa-math");
  expect_refused({"storage", "e4m3"}, plain,
                 "setting storage is \"e4m3\"; accepted: bfloat16, binary16, binary32, binary64");
  expect_refused({"storage", "bf\x1b"}, plain, "\\x1b");
  for (const char* threads : {"0", "1025", "2x", "", "-1"}) {
    expect_refused({"threads", threads}, plain, "accepted: 1 to 1024");
  }
  expect_refused({"dispatch", "fp32"}, plain,
                 "setting \"dispatch\"; libtorch accepts: attention, kv-heads, storage, threads");
}

}  // namespace
}  // namespace kvsim::gpu
