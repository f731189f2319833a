// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The reader of config.json on any text: a configuration or one line of error. A configuration is
// within its limits, and is either the shape of a decoder that check_shape() accepts or refused
// with one line; where it is small, its weights are listed.
#include "model/config.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/targets/input.h"
#include "model/weight_rows.h"
#include "run/model_shape.h"

namespace {

using kvsim::targets::check_error;
using kvsim::targets::require;

void check_weights(const kvsim::ModelConfig& config) {
  const auto weights = kvsim::expected_weights(config, kvsim::weight_prefixes()[0]);
  require(!weights.empty());
  for (const kvsim::ExpectedWeight& weight : weights) {
    require(!weight.name.empty() && weight.layer < config.layers);
    require(weight.shape.size() == 1 || weight.shape.size() == 2);
    for (const std::int64_t size : weight.shape) require(size > 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = kvsim::parse_config(text, "config.json");
  if (!config) {
    check_error(config.error());
    require(config.error().kind == kvsim::ErrorKind::file);
    require(config.error().message.starts_with("config.json"));
    return 0;
  }
  require(static_cast<std::int64_t>(config->has_window.size()) == config->layers);
  require(config->layers > 0 && config->hidden > 0 && config->query_heads > 0);
  require(std::isfinite(config->norm_epsilon) && std::isfinite(config->rope_base));
  const auto again = kvsim::parse_config(text, "config.json");
  require(again.has_value() && again->unused == config->unused);
  const auto shape = kvsim::decoder_shape(*config);
  if (!shape) {
    check_error(shape.error());
    return 0;
  }
  require(kvsim::check_shape(*shape).has_value());
  require(shape->layers == config->layers && shape->head_dim == config->head_dim);
  if (config->layers <= 64) check_weights(*config);
  return 0;
}
