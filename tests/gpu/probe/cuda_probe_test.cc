// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
/// \file
/// How kernels are loaded and run, shown with a stand-in for NVIDIA's driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/cuda/embedded_probes.h"
#include "gpu/probe/cuda_probe_device.h"
#include "gpu/probe/probe.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// The stand-in as a device of another compute capability.
class Capability {
 public:
  explicit Capability(const char* capability) { setenv(name, capability, 1); }
  Capability(const Capability&) = delete;
  Capability& operator=(const Capability&) = delete;
  ~Capability() { unsetenv(name); }

 private:
  static constexpr const char* name = "KVSIM_FAKE_CAPABILITY";
};

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
                  "h100.mma.f64.f64", "h100.mma.tf32.f32", "h100.mma.bf16.f32", "h100.mma.f16.f32",
                  "h100.mma.f16.f16", "h100.mma.e4m3.f32", "h100.mma.e5m2.f32", "h100.mma.e4m3.f16",
                  "h100.mma.e5m2.f16", "h100.wgmma.tf32.f32", "h100.wgmma.bf16.f32",
                  "h100.wgmma.f16.f32", "h100.wgmma.f16.f16", "h100.wgmma.e4m3.f32",
                  "h100.wgmma.e5m2.f32", "h100.wgmma.e4m3.f16", "h100.wgmma.e5m2.f16"));
}

// K of every instruction that has a kernel fills the 32 bytes that the kernels load; 6- and 4-bit
// numbers take a byte each but in instructions for 4 bits alone, and f64 has 16 terms.
TEST(CudaProbe, OperandsFillWhatTheKernelsLoad) {
  for (const char* const capability : {"80", "89", "90", "100", "120"}) {
    const Capability as(capability);
    const auto device = fake_device();
    ASSERT_TRUE(device);
    for (const std::string& name : (*device)->units()) {
      const auto unit = (*device)->unit(*find_matrix_unit(name));
      ASSERT_TRUE(unit) << name;
      const int products = (*unit)->shape().products;
      const int width = products == 32 ? 8 : (*unit)->shape().operand.width();
      const bool wide = width == 64 && products == 16;
      EXPECT_EQ(products * width, wide ? 1024 : 256) << name;
    }
  }
}

TEST(CudaProbe, ChainsOfBinary64AreThoseOfTheTable) {
  for (const auto& [capability, name] :
       {std::pair{"80", "a100.mma.f64.f64"}, std::pair{"90", "h100.mma.f64.f64"}}) {
    const Capability as(capability);
    const auto device = fake_device();
    ASSERT_TRUE(device);
    const MatrixUnit& row = *find_matrix_unit(name);
    const auto unit = (*device)->unit(row);
    ASSERT_TRUE(unit) << unit.error().message;
    const auto probe = probe_unit(**unit, row, {.random_rows = 5000});
    ASSERT_TRUE(probe) << probe.error().message;
    EXPECT_GT(probe->rows.size(), 5000U);
    EXPECT_EQ(probe->different, 0U)
        << name << ", first: " << std::hex << probe->results[probe->first_different];
    for (const ComparedProperty& property : probe->properties) {
      EXPECT_NE(property.agrees, std::optional(false)) << name << ": " << property.name;
    }
  }
}

// One product, 3 · −1.5, of each block in turn, and a sum with a product of each.
TEST(CudaProbe, ScalesReachTheirBlocks) {
  const Capability as("120");
  const auto device = fake_device();
  ASSERT_TRUE(device);
  const auto result = [&](std::string_view name, const ProbeRow& row) {
    const auto unit = (*device)->unit(*find_matrix_unit(name));
    EXPECT_TRUE(unit) << unit.error().message;
    const auto results = (*unit)->run(std::vector(2, row));
    EXPECT_TRUE(results) << results.error().message;
    EXPECT_EQ(results->at(0), results->at(1));
    return std::bit_cast<float>(static_cast<std::uint32_t>(results->at(0)));
  };
  ProbeRow row;
  row.c = 0x3f800000;                       // 1
  row.a_scales = {0x38, 0x40, 0x30, 0x48};  // 1, 2, ½, 4
  row.b_scales = {0x38, 0x38, 0x48, 0x3c};  // 1, 1, 4, 1½
  constexpr std::array<float, 4> scales{1, 2, 2, 6};
  float sum = 1;
  ProbeRow all = row;
  all.a.assign(64, 0);
  all.b.assign(64, 0);
  for (std::size_t block = 0; block < 4; ++block) {
    const std::size_t k = 16 * block + 3 * block + 1;
    ProbeRow one = row;
    one.a.assign(64, 0);
    one.b.assign(64, 0);
    one.a[k] = all.a[k] = 5;   // 3
    one.b[k] = all.b[k] = 11;  // −1.5
    EXPECT_EQ(result("rtxpro6000.mma.nvf4.f32", one), 1 - 4.5F * scales.at(block)) << block;
    sum -= 4.5F * scales.at(block);
  }
  EXPECT_EQ(result("rtxpro6000.mma.nvf4.f32", all), sum);
  ProbeRow mx = row;
  mx.a.assign(32, 0);
  mx.b.assign(32, 0);
  mx.a[30] = 5;
  mx.b[30] = 11;
  mx.a_scales = {128};
  mx.b_scales = {125};
  EXPECT_EQ(result("rtxpro6000.mma.mx_e2m1.f32", mx), 1 - 4.5F / 2);
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
  for (const char* const capability : {"80", "90", "120"}) {
    const Capability as(capability);
    const auto device = fake_device();
    ASSERT_TRUE(device);
    for (std::string name : (*device)->units()) {
      name.replace(0, name.find('.') + 1, "kvsim_");
      std::ranges::replace(name, '.', '_');
      EXPECT_NE(text.find(name), std::string_view::npos) << name;
    }
  }
  for (const ElementaryRow& row : elementary_rows()) {
    EXPECT_NE(text.find("kvsim_" + std::string(row.name)), std::string_view::npos) << row.name;
  }
}
#endif

}  // namespace
}  // namespace kvsim::gpu
