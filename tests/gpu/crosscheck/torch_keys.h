// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "gpu/backend.h"
#include "gpu/host_cpu.h"
#include "gpu/setting.h"

/// libtorch under the setting of the program, and the CPUs for which equality was seen.
namespace kvsim::test {

struct CpuKey {
  std::string_view vendor;
  std::string_view features;
};

inline constexpr CpuKey known_keys[] = {
    {"AuthenticAMD",
     "avx avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16"},
};

inline bool is_known_key() {
  return std::any_of(std::begin(known_keys), std::end(known_keys), [](const CpuKey& key) {
    return key.vendor == gpu::host_cpu().vendor && key.features == gpu::host_cpu().features;
  });
}

inline std::unique_ptr<gpu::Backend> torch_backend() {
  const auto applied = gpu::apply_setting(KVSIM_TEST_SETTING);
  EXPECT_TRUE(applied) << applied.error().message;
  auto backend = gpu::make_backend("torch-cpu");
  EXPECT_TRUE(backend) << backend.error().message;
  return backend ? std::move(*backend) : nullptr;
}

}  // namespace kvsim::test
