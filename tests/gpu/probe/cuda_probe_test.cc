// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// How kernels are loaded and run, shown with a stand-in for NVIDIA's driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "gpu/cuda/embedded_probes.h"
#include "gpu/probe/cuda_probe_device.h"
#include "gpu/probe/probe.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Result<std::unique_ptr<ProbeDevice>> fake_device(std::string_view image = "image") {
  // The stand-in reads a string with its end.
  static std::string bytes;
  bytes = image;
  CudaLibraries libraries;
  libraries.driver = {KVSIM_FAKE_DRIVER};
  return make_cuda_probe_device(libraries, std::as_bytes(std::span(bytes)));
}

TEST(CudaProbe, TheDeviceAndItsUnits) {
  const auto device = fake_device();
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ((*device)->fingerprint().value(fingerprint_names::device),
            "Fake GPU (sm90, 7 multiprocessors)");
  EXPECT_THAT((*device)->units(),
              UnorderedElementsAre(
                  "h100.mma.tf32.f32", "h100.mma.bf16.f32", "h100.mma.f16.f32", "h100.mma.f16.f16",
                  "h100.mma.e4m3.f32", "h100.mma.e5m2.f32", "h100.mma.e4m3.f16",
                  "h100.mma.e5m2.f16", "h100.wgmma.tf32.f32", "h100.wgmma.bf16.f32",
                  "h100.wgmma.f16.f32", "h100.wgmma.f16.f16", "h100.wgmma.e4m3.f32",
                  "h100.wgmma.e5m2.f32", "h100.wgmma.e4m3.f16", "h100.wgmma.e5m2.f16"));
}

// K of every instruction that has a kernel fills the 32 bytes that the kernels load.
TEST(CudaProbe, OperandsFill32Bytes) {
  const auto device = fake_device();
  ASSERT_TRUE(device);
  for (const std::string& name : (*device)->units()) {
    const auto unit = (*device)->unit(*find_matrix_unit(name));
    ASSERT_TRUE(unit) << name;
    EXPECT_EQ((*unit)->shape().products * (*unit)->shape().operand.width(), 256) << name;
  }
}

TEST(CudaProbe, OperandsReachTheKernelAndResultsComeBack) {
  const auto device = fake_device();
  ASSERT_TRUE(device);
  const MatrixUnit& row = *find_matrix_unit("h100.mma.f16.f32");
  const auto unit = (*device)->unit(row);
  ASSERT_TRUE(unit);
  const auto probe = probe_unit(**unit, row, {.random_rows = 5000});
  ASSERT_TRUE(probe) << probe.error().message;
  ASSERT_FALSE(probe->properties.empty());
  EXPECT_EQ(to_string(probe->properties.front().seen), "16 products in turn, c first");
  EXPECT_EQ(probe->properties.front().agrees, std::optional(false));
  const auto rounding = std::ranges::find(probe->properties, "rounding", &ComparedProperty::name);
  ASSERT_NE(rounding, probe->properties.end());
  EXPECT_EQ(to_string(rounding->seen), "to nearest, ties to even");
  EXPECT_GT(probe->different, 100U);
  EXPECT_FALSE(probe->equal());
}

TEST(CudaProbe, AResultThatDependsOnItsPlaceIsNone) {
  const auto device = fake_device();
  ASSERT_TRUE(device);
  const MatrixUnit& row = *find_matrix_unit("h100.mma.bf16.f32");
  const auto unit = (*device)->unit(row);
  ASSERT_TRUE(unit);
  const auto probe = probe_unit(**unit, row);
  ASSERT_FALSE(probe);
  EXPECT_EQ(probe.error().kind, ErrorKind::cannot_tell);
  EXPECT_THAT(probe.error().message, HasSubstr("elements 0 and 77 of a tile"));
}

TEST(CudaProbe, FailuresSayWhatFailed) {
  const auto device = fake_device();
  ASSERT_TRUE(device);
  const auto run = [&](std::string_view name) {
    const MatrixUnit& row = *find_matrix_unit(name);
    const auto unit = (*device)->unit(row);
    if (!unit) return unit.error();
    return probe_unit(**unit, row).error();
  };
  const Error failing = run("h100.mma.tf32.f32");
  EXPECT_EQ(failing.kind, ErrorKind::file);
  EXPECT_EQ(failing.message, "kvsim_mma_tf32_f32 gives 700 (CUDA_ERROR_ILLEGAL_ADDRESS)");
  const Error missing = run("h100.wgmma.e4m3.f32");
  EXPECT_EQ(missing.kind, ErrorKind::unavailable);
  EXPECT_EQ(missing.message,
            "no kernel kvsim_wgmma_e4m3_f32 for this device: cuModuleGetFunction gives 500 "
            "(CUDA_ERROR_NOT_FOUND)");
  const Error other = run("a100.mma.f16.f32");
  EXPECT_EQ(other.kind, ErrorKind::unavailable);
  EXPECT_EQ(other.message, "a100.mma.f16.f32: no such instruction of Fake GPU (sm90) is probed");
}

TEST(CudaProbe, AnImageForNoSuchDevice) {
  const auto device = fake_device("other");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(device.error().message,
            "no kernels for Fake GPU (sm90) in this build: cuModuleLoadData gives 200 "
            "(CUDA_ERROR_INVALID_IMAGE)");
  const auto without = fake_device("");
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(without.error().message, HasSubstr("this build has no CUDA kernels"));
}

TEST(CudaProbe, FunctionsOfNumbers) {
  const auto device = fake_device();
  ASSERT_TRUE(device);
  const std::array<float, 4> numbers{1, 2, 0.5F, -4};
  const auto powers = (*device)->compute(ElementaryFunction::ex2, numbers);
  ASSERT_TRUE(powers) << powers.error().message;
  EXPECT_THAT(*powers, ElementsAre(2, 4, 1.41421354F, 0.0625F));
  const auto reciprocals = (*device)->compute(ElementaryFunction::rcp, numbers);
  ASSERT_TRUE(reciprocals);
  EXPECT_THAT(*reciprocals, ElementsAre(1, 0.5F, 2, -0.25F));
  EXPECT_FALSE((*device)->compute(ElementaryFunction::lg2, numbers));
}

#ifdef KVSIM_HAS_NVCC
// A fatbin begins with these four bytes (fatbinary_section.h of CUDA 13.0 has the section's own).
TEST(CudaProbe, TheBuildHasAnImage) {
  const auto image = embedded_probes();
  ASSERT_GT(image.size(), 10000U);
  EXPECT_EQ(image[0], std::byte{0x50});
  EXPECT_EQ(image[1], std::byte{0xed});
  EXPECT_EQ(image[2], std::byte{0x55});
  EXPECT_EQ(image[3], std::byte{0xba});
  // Every kernel that a device may be asked for is in it.
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  const auto device = fake_device();
  ASSERT_TRUE(device);
  for (std::string name : (*device)->units()) {
    name.replace(0, std::string_view("h100.").size(), "kvsim_");
    std::ranges::replace(name, '.', '_');
    EXPECT_NE(text.find(name), std::string_view::npos) << name;
  }
  for (const ElementaryRow& row : elementary_rows()) {
    EXPECT_NE(text.find("kvsim_" + std::string(row.name)), std::string_view::npos) << row.name;
  }
}
#endif

}  // namespace
}  // namespace kvsim::gpu
