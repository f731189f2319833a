// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/torch/decoder_weights.h"

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "softfloat/formats.h"

namespace kvsim::gpu::aten {
namespace {

using at::Tensor;

struct Place {
  WeightView DecoderLayerWeights::* view;
  Tensor LayerTensors::* tensor;
};
using W = DecoderLayerWeights;
using T = LayerTensors;
constexpr std::array matrices{
    Place{&W::query, &T::query},   Place{&W::key, &T::key},   Place{&W::value, &T::value},
    Place{&W::output, &T::output}, Place{&W::gate, &T::gate}, Place{&W::up, &T::up},
    Place{&W::down, &T::down},
};
constexpr std::array vectors{
    Place{&W::attention_norm, &T::attention_norm},
    Place{&W::query_bias, &T::query_bias},
    Place{&W::key_bias, &T::key_bias},
    Place{&W::value_bias, &T::value_bias},
    Place{&W::output_bias, &T::output_bias},
    Place{&W::query_norm, &T::query_norm},
    Place{&W::key_norm, &T::key_norm},
    Place{&W::attention_post_norm, &T::attention_post_norm},
    Place{&W::mlp_norm, &T::mlp_norm},
    Place{&W::gate_bias, &T::gate_bias},
    Place{&W::up_bias, &T::up_bias},
    Place{&W::down_bias, &T::down_bias},
    Place{&W::mlp_post_norm, &T::mlp_post_norm},
};

/// The weight, in place where it can be. libtorch's allocations begin at multiples of 64 bytes and
/// MKL's sums depend on where a matrix begins: one that begins elsewhere is copied.
Tensor tensor_of(const WeightView& view, bool is_matrix, at::ScalarType storage,
                 at::Device device) {
  constexpr std::uintptr_t alignment = 64;
  if (!view.present()) return {};
  std::vector<std::int64_t> sizes{view.columns};
  if (is_matrix) sizes = {view.rows, view.columns};
  const auto options = at::TensorOptions().dtype(scalar_type(view.format));
  Tensor tensor;
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignment == 0) {
    // Never written to.
    tensor = at::from_blob(const_cast<void*>(view.data), sizes, options);
  } else {
    tensor = at::empty(sizes, options);
    std::memcpy(tensor.data_ptr(), view.data, tensor.nbytes());
  }
  return tensor.to(device, storage);
}

}  // namespace

at::ScalarType scalar_type(const softfloat::Format& format) {
  if (format == softfloat::bfloat16) return at::kBFloat16;
  if (format == softfloat::binary16) return at::kHalf;
  if (format == softfloat::binary64) return at::kDouble;
  return at::kFloat;
}

ModelTensors::ModelTensors(const DecoderWeights& weights, at::ScalarType storage,
                           at::Device device) {
  const auto matrix = [&](const WeightView& view) {
    return tensor_of(view, true, storage, device);
  };
  const auto vector = [&](const WeightView& view) {
    return tensor_of(view, false, storage, device);
  };
  embedding = matrix(weights.embedding);
  output = weights.output.present() ? matrix(weights.output) : embedding;
  final_norm = vector(weights.final_norm);
  layers.reserve(weights.layers.size());
  for (const DecoderLayerWeights& layer : weights.layers) {
    LayerTensors& tensors = layers.emplace_back();
    for (const Place& place : matrices) tensors.*place.tensor = matrix(layer.*place.view);
    for (const Place& place : vectors) tensors.*place.tensor = vector(layer.*place.view);
  }
}

}  // namespace kvsim::gpu::aten
