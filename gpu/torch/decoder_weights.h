// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sim/decoder/weights_view.h"
#include "softfloat/format.h"

namespace kvsim::gpu::aten {

/// The weights of one layer; undefined where the model has none.
struct LayerTensors {
  at::Tensor attention_norm, query, key, value, output, query_bias, key_bias, value_bias,
      output_bias, query_norm, key_norm, attention_post_norm, mlp_norm, gate, up, down, gate_bias,
      up_bias, down_bias, mlp_post_norm;
};

/// The weights of a model in one format on one device, where they stand if format, device and place
/// allow it.
struct ModelTensors {
  ModelTensors(const DecoderWeights& weights, at::ScalarType storage, at::Device device);

  at::Tensor embedding;
  at::Tensor output;
  at::Tensor final_norm;
  std::vector<LayerTensors> layers;
};

/// libtorch's name of bfloat16, binary16, binary32 or binary64.
[[nodiscard]] at::ScalarType scalar_type(const softfloat::Format& format);

}  // namespace kvsim::gpu::aten
