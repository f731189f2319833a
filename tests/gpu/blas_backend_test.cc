// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/blas_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "gpu/backend.h"
#include "gpu/operators.h"
#include "gpu/shared_library.h"
#include "softfloat/formats.h"
#include "tests/gpu/closed_forms.h"

namespace kvsim::gpu {
namespace {

using ::testing::HasSubstr;

class Blas : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto made = make_backend(GetParam());
    ASSERT_TRUE(made) << made.error().message;
    backend = std::move(*made);
  }
  std::unique_ptr<Backend> backend;
};

TEST_P(Blas, EveryOperatorWithinTheBoundOfItsClosedForm) {
  for (const test::Case& row : test::product_cases()) {
    if (row.call.operation == "matmul" || row.call.operation == "bmm" ||
        row.call.inputs.size() > 2) {
      continue;
    }
    for (const char* const layout : {"row", "column"}) {
      for (const std::int64_t misalignment : {0, 4, 36}) {
        OperatorCall call = row.call;
        if (call.operation != "dot") call.attributes["layout"] = layout;
        call.inputs[1].misalignment = misalignment;
        const auto result = backend->run(call);
        ASSERT_TRUE(result) << result.error().message;
        test::expect_near(row, *result);
      }
    }
  }
}

TEST_P(Blas, ThreadsChangeNoMoreThanRounding) {
  ASSERT_TRUE(backend->set_threads(2));
  EXPECT_EQ(backend->fingerprint().value("threads"), "2");
  const test::Case row = test::product_case("gemm", 96, 300, 80);
  const auto result = backend->run(row.call);
  ASSERT_TRUE(result) << result.error().message;
  test::expect_near(row, *result);
  EXPECT_FALSE(backend->set_threads(0));
}

TEST_P(Blas, TheFingerprintNamesVersionAndCore) {
  const Fingerprint fingerprint = backend->fingerprint();
  EXPECT_EQ(fingerprint.value("backend"), GetParam());
  for (const char* const name : {"version", "core", "cpu-vendor", "threads", "library"}) {
    EXPECT_NE(fingerprint.value(name), "") << name;
  }
}

TEST_P(Blas, Errors) {
  OperatorCall call = test::product_case("linear", 2, 3, 4).call;
  call.inputs.push_back(zero_tensor(softfloat::binary32, {4}));
  EXPECT_THAT(backend->run(call).error().message, HasSubstr("adds no bias"));
  call.inputs.pop_back();
  call.attributes["layout"] = "diagonal";
  EXPECT_THAT(backend->run(call).error().message, HasSubstr("layout=diagonal is neither"));
  call.operation = "sum";
  call.inputs.pop_back();
  EXPECT_EQ(backend->run(call).error().kind, ErrorKind::unavailable);
  const std::string name = GetParam();
  const auto missing = make_backend(name + ":./no-such-library.so");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::unavailable);
  EXPECT_THAT(missing.error().message, HasSubstr("install the package lib"));
  const auto other = make_backend(name + ":libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("libc.so.6 is not a library of " + name));
}

INSTANTIATE_TEST_SUITE_P(Libraries, Blas, ::testing::Values("openblas", "blis"),
                         [](const auto& row) { return std::string(row.param); });

// Both define cblas_sdot; each adapter must reach its own.
TEST(BlasTogether, TwoLibrariesInOneProcessKeepTheirOwnFunctions) {
  const auto openblas = make_backend("openblas");
  const auto blis = make_backend("blis");
  ASSERT_TRUE(openblas && blis);
  void (*functions[2])() = {};
  for (const int i : {0, 1}) {
    const Backend& backend = i == 0 ? **openblas : **blis;
    const std::string path(backend.fingerprint().value("library"));
    const auto library = SharedLibrary::open(std::vector<std::string>{path});
    ASSERT_TRUE(library) << library.error().message;
    functions[i] = library->find<void()>("cblas_sdot");
    ASSERT_NE(functions[i], nullptr);
  }
  EXPECT_NE(functions[0], functions[1]);
  EXPECT_NE((*openblas)->fingerprint().key(), (*blis)->fingerprint().key());
  const test::Case row = test::product_case("dot", 1, 1001, 1);
  const auto before = (*openblas)->run(row.call);
  const auto other = (*blis)->run(row.call);
  const auto after = (*openblas)->run(row.call);
  ASSERT_TRUE(before && other && after);
  EXPECT_EQ(before->values, after->values);
}

}  // namespace
}  // namespace kvsim::gpu
