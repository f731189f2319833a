// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// The units and functions of the GPU of this machine, where there is one.

#include <gtest/gtest.h>

#include "gpu/probe/probe.h"
#include "gpu/probe/probe_device.h"
#include "sim/exp_models.h"

namespace kvsim::gpu {
namespace {

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = make_probe_device("cuda");
    if (!made && made.error().message.starts_with("no GPU")) GTEST_SKIP() << made.error().message;
    ASSERT_TRUE(made) << made.error().message;
    device = std::move(*made);
  }
  std::unique_ptr<ProbeDevice> device;
};

TEST_F(Device, EveryUnitIsWhatTheTableSays) {
  ASSERT_FALSE(device->units().empty());
  for (const std::string& name : device->units()) {
    const MatrixUnit& row = *find_matrix_unit(name);
    const auto unit = device->unit(row);
    ASSERT_TRUE(unit) << name << ": " << unit.error().message;
    const auto probe = probe_unit(**unit, row);
    ASSERT_TRUE(probe) << name << ": " << probe.error().message;
    EXPECT_EQ(probe->no_structure, std::nullopt) << name;
    EXPECT_EQ(probe->different, 0U) << name << ", first row " << probe->first_different;
    for (const ComparedProperty& one : probe->properties) {
      EXPECT_NE(one.agrees, std::optional(false))
          << name << ", " << one.name << ": " << to_string(one.seen) << ", in the table "
          << to_string(one.declared);
    }
  }
}

TEST_F(Device, ItsExponentialsMakeATable) {
  const ElementaryRow& row = elementary_rows().front();
  const auto table = capture_table(row, 16, 1, [&](std::span<const float> numbers) {
    return device->compute(row.function, numbers);
  });
  ASSERT_TRUE(table) << table.error().message;
  const auto accepted = make_exp_table(table->values);
  EXPECT_TRUE(accepted) << accepted.error().message;
}

}  // namespace
}  // namespace kvsim::gpu
