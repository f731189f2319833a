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
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/setting.h"
#include "gpu/torch/rope.h"
#include "gpu/torch_engine.h"
#include "gpu/torch_library.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

constexpr std::string_view wanted = "RoPE factors of torch-cpu";

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

/// What RoPE needs of a configuration.
ModelConfig config_of(const DecoderShape& shape) {
  ModelConfig config;
  config.head_dim = shape.head_dim;
  config.rope_base = shape.rope_base;
  config.rope_interleaved = shape.rope_interleaved;
  config.window_rope_base = shape.window_rope_base;
  if (shape.rope_scaling.kind == RopeScalingKind::linear) {
    config.rope_scaling = ConfigRopeScaling::linear;
  } else if (shape.rope_scaling.kind == RopeScalingKind::llama3) {
    config.rope_scaling = ConfigRopeScaling::llama3;
  }
  config.rope_factor = shape.rope_scaling.factor;
  config.rope_low_frequency_factor = shape.rope_scaling.low_frequency_factor;
  config.rope_high_frequency_factor = shape.rope_scaling.high_frequency_factor;
  config.rope_original_positions = shape.rope_scaling.original_positions;
  return config;
}

}  // namespace

Result<RopeSource> torch_rope_source(const ModelConfig& config, const softfloat::Format& storage) {
  const std::array formats{softfloat::bfloat16, softfloat::binary16, softfloat::binary32};
  if (std::ranges::find(formats, storage) == formats.end()) {
    return Error{ErrorKind::usage, fmt::format("{} in {}; accepted: bfloat16, binary16 or binary32",
                                               wanted, softfloat::format_name(storage))};
  }
  const auto make = torch_function<MakeTorchRope>(wanted, make_torch_rope_name);
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

Result<RopeSource> torch_rope_source(const DecoderShape& shape, const softfloat::Format& storage) {
  return torch_rope_source(config_of(shape), storage);
}

RopeOrigin torch_rope_origin() {
  RopeOrigin origin{std::string(torch_cpu_engine_name),
                    {},
                    [](const ModelConfig& config, const softfloat::Format& storage) {
                      return torch_rope_source(config, storage);
                    }};
  if (const SettingRow& setting = current_setting(); setting.name != setting_rows().front().name) {
    origin.detail = fmt::format("setting={}", setting.name);
  }
  return origin;
}

}  // namespace kvsim::gpu
