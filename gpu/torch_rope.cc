// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/setting.h"
#include "gpu/torch/rope.h"
#include "gpu/torch_engine.h"
#include "gpu/torch_library.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// One factor of each pair, as the simulator has them.
RopeTable table_of(const TorchRopeFactors& factors, const ModelConfig& config,
                   std::int64_t positions) {
  RopeTable table;
  table.positions = positions;
  table.pairs = config.head_dim / 2;
  const auto take = [&](const std::vector<double>& all) {
    std::vector<float> half;
    half.reserve(static_cast<std::size_t>(positions * table.pairs));
    for (std::int64_t row = 0; row < positions; ++row) {
      for (std::int64_t i = 0; i < table.pairs; ++i) {
        const std::int64_t channel = config.rope_interleaved ? 2 * i : i;
        half.push_back(
            static_cast<float>(all[static_cast<std::size_t>(row * config.head_dim + channel)]));
      }
    }
    return half;
  };
  table.cosine = take(factors.cosine);
  table.sine = take(factors.sine);
  return table;
}

}  // namespace

Result<RopeSource> torch_rope_source(const ModelConfig& config, const softfloat::Format& storage) {
  const std::array formats{softfloat::bfloat16, softfloat::binary16, softfloat::binary32};
  if (std::ranges::find(formats, storage) == formats.end()) {
    return Error{ErrorKind::usage,
                 fmt::format("rope={} with format.activations={}; accepted: bfloat16, binary16 or "
                             "binary32",
                             torch_cpu_engine_name, softfloat::format_name(storage))};
  }
  const auto make = torch_function<MakeTorchRope>(fmt::format("rope={}", torch_cpu_engine_name),
                                                  make_torch_rope_name);
  if (!make) return make.error();
  Result<std::unique_ptr<TorchRope>> rope = std::unique_ptr<TorchRope>();
  (*make)(config, storage, rope);
  if (!rope) return rope.error();
  const std::shared_ptr<const TorchRope> shared = std::move(*rope);
  return RopeSource([config, shared](bool windowed, std::int64_t positions) -> Result<RopeTable> {
    const auto factors = shared->factors(windowed, 0, positions);
    if (!factors) return factors.error();
    return table_of(*factors, config, positions);
  });
}

RopeOrigin torch_rope_origin() {
  RopeOrigin origin{std::string(torch_cpu_engine_name), {}, torch_rope_source};
  if (const SettingRow& setting = current_setting(); setting.name != setting_rows().front().name) {
    origin.detail = fmt::format("setting={}", setting.name);
  }
  return origin;
}

}  // namespace kvsim::gpu
