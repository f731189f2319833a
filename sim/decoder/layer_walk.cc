// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/decoder/layer_walk.h"

namespace kvsim::decoder {
namespace {

Result<bool> finish_branch(const DecoderShape& shape, LayerSteps& steps, WeightKind post_norm) {
  Result<bool> done = true;
  if (shape.sandwich_norms) {
    done = steps.norm(post_norm, Buffer::branch, Buffer::branch, shape.hidden);
  }
  return done ? steps.add_branch() : done;
}

Result<bool> walk_attention(const DecoderShape& shape, LayerSteps& steps) {
  const bool bias = shape.qkv_bias;
  Result<bool> done =
      steps.norm(WeightKind::attention_norm, Buffer::hidden, Buffer::normed, shape.hidden);
  if (done) done = steps.linear(WeightKind::query, Buffer::normed, Buffer::query, bias);
  if (done) done = steps.linear(WeightKind::key, Buffer::normed, Buffer::key, bias);
  if (done) done = steps.linear(WeightKind::value, Buffer::normed, Buffer::value, bias);
  if (done) steps.projected();
  if (done && shape.qk_norm) {
    done = steps.norm(WeightKind::query_norm, Buffer::query, Buffer::query, shape.head_dim);
    if (done) done = steps.norm(WeightKind::key_norm, Buffer::key, Buffer::key, shape.head_dim);
  }
  if (done) done = steps.rotate();
  if (done) done = steps.attend();
  if (done) {
    done = steps.linear(WeightKind::output, Buffer::attended, Buffer::branch, shape.output_bias);
  }
  return done ? finish_branch(shape, steps, WeightKind::attention_post_norm) : done;
}

Result<bool> walk_mlp(const DecoderShape& shape, LayerSteps& steps) {
  const bool bias = shape.mlp_bias;
  Result<bool> done =
      steps.norm(WeightKind::mlp_norm, Buffer::hidden, Buffer::normed, shape.hidden);
  if (done) done = steps.linear(WeightKind::gate, Buffer::normed, Buffer::gate, bias);
  if (done) done = steps.linear(WeightKind::up, Buffer::normed, Buffer::up, bias);
  if (done) done = steps.multiply_gate();
  if (done) done = steps.linear(WeightKind::down, Buffer::gate, Buffer::branch, bias);
  return done ? finish_branch(shape, steps, WeightKind::mlp_post_norm) : done;
}

}  // namespace

Result<bool> walk_layer(const DecoderShape& shape, LayerSteps& steps) {
  const Result<bool> done = walk_attention(shape, steps);
  return done ? walk_mlp(shape, steps) : done;
}

}  // namespace kvsim::decoder
