// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/cublas_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/cuda_device.h"
#include "gpu/operators.h"
#include "softfloat/formats.h"
#include "tests/gpu/closed_forms.h"

namespace kvsim::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CudaLibraries fake() {
  const std::vector<std::string> library = {KVSIM_FAKE_CUDA};
  return {library, library, library, library};
}

// How the libraries are called, shown with a stand-in for them.
class FakeCublas : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto made = make_cublas_backend(fake(), GetParam());
    ASSERT_TRUE(made) << made.error().message;
    backend = std::move(*made);
  }
  std::unique_ptr<Backend> backend;
};

TEST_P(FakeCublas, ProductsWithinTheBoundOfTheirClosedForm) {
  std::size_t run = 0;
  for (const softfloat::Format& format : {softfloat::binary32, softfloat::bfloat16}) {
    for (test::Case row : test::product_cases(format)) {
      const std::string& name = row.call.operation;
      if ((name != "linear" && name != "gemm" && name != "matmul") || row.call.inputs.size() > 2) {
        continue;
      }
      row.call.inputs[0].misalignment = 4;
      const auto result = backend->run(row.call);
      ASSERT_TRUE(result) << result.error().message;
      test::expect_near(row, *result);
      ++run;
    }
  }
  EXPECT_EQ(run, 16U);
}

TEST_P(FakeCublas, AttributesReachTheLibrary) {
  OperatorCall call{.operation = "linear"};
  call.inputs = {Tensor{softfloat::bfloat16, {1, 2}, {256, 1}},
                 Tensor{softfloat::bfloat16, {1, 2}, {1, 1}}};
  EXPECT_THAT(backend->run(call)->values, ElementsAre(256));
  call.attributes["output"] = "fp32";
  EXPECT_THAT(backend->run(call)->values, ElementsAre(257));
  call.attributes["output"] = "fp16";
  EXPECT_THAT(backend->run(call).error().message, HasSubstr("neither binary32 nor bfloat16"));
  call.attributes = {{"tf32", "1"}};
  EXPECT_TRUE(backend->run(call));
  call.attributes = {{"tf32", "2"}};
  EXPECT_FALSE(backend->run(call));
}

TEST_P(FakeCublas, TheFingerprintNamesTheDevice) {
  const Fingerprint fingerprint = backend->fingerprint();
  EXPECT_EQ(fingerprint.value("backend"), GetParam() ? "cublaslt" : "cublas");
  EXPECT_EQ(fingerprint.value("version"), "13.1.0");
  EXPECT_EQ(fingerprint.value("device"), "Fake GPU (sm90, 7 multiprocessors)");
  EXPECT_EQ(fingerprint.value("driver"), "CUDA 13.0");
}

INSTANTIATE_TEST_SUITE_P(Libraries, FakeCublas, ::testing::Bool(), [](const auto& row) {
  return std::string(row.param ? "cublaslt" : "cublas");
});

TEST(FakeCublasLight, AlgorithmsAreChosenByNumber) {
  auto made = make_cublas_backend(fake(), true);
  ASSERT_TRUE(made) << made.error().message;
  OperatorCall call{.operation = "linear"};
  call.inputs = {Tensor{softfloat::binary32, {1, 4}, {0x1p24F, 1, 1, 1}},
                 Tensor{softfloat::binary32, {1, 4}, {1, 1, 1, 1}}};
  EXPECT_THAT((*made)->run(call)->values, ElementsAre(0x1p24F));
  call.attributes = {{"algorithm", "1"}};
  const auto refused = (*made)->run(call);
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("names 1 algorithms within 0 bytes"));
  call.attributes["workspace"] = "1024";  // the stand-in's second algorithm adds backwards
  EXPECT_THAT((*made)->run(call)->values, ElementsAre(0x1p24F + 4));
}

TEST(CudaDevices, WithoutOneTheErrorSaysSo) {
  setenv("KVSIM_FAKE_GPUS", "0", 1);
  const auto none = make_cublas_backend(fake(), false);
  unsetenv("KVSIM_FAKE_GPUS");
  EXPECT_EQ(none.error().kind, ErrorKind::unavailable);
  EXPECT_EQ(none.error().message, "cublas: no GPU: the NVIDIA driver sees no device");
  CudaLibraries libraries = fake();
  libraries.driver = {"libno-such-driver.so"};
  EXPECT_THAT(make_cublas_backend(libraries, true).error().message,
              HasSubstr("cublaslt: no GPU: there is no NVIDIA driver here"));
  libraries = fake();
  libraries.cublas = {"libno-such-cublas.so"};
  EXPECT_THAT(make_cublas_backend(libraries, false).error().message,
              HasSubstr("libno-such-cublas.so"));
}

// The real libraries, wherever there is a GPU.
TEST(RealCublas, ProductsWithinTheBoundOfTheirClosedForm) {
  if (const auto device = find_cuda_device(); !device) {
    EXPECT_EQ(make_backend("cublas").error().kind, ErrorKind::unavailable);
    EXPECT_EQ(make_backend("cublaslt").error().kind, ErrorKind::unavailable);
    GTEST_SKIP() << device.error().message;
  }
  for (const char* const name : {"cublas", "cublaslt"}) {
    auto made = make_backend(name);
    ASSERT_TRUE(made) << made.error().message;
    for (const test::Case& row : test::product_cases()) {
      const std::string& operation = row.call.operation;
      if ((operation != "linear" && operation != "gemm") || row.call.inputs.size() > 2) continue;
      const auto result = (*made)->run(row.call);
      ASSERT_TRUE(result) << result.error().message;
      test::expect_near(row, *result);
    }
  }
}

}  // namespace
}  // namespace kvsim::gpu
