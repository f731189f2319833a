// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/named_shape.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "cli/number_list.h"
#include "cli/printable.h"
#include "model/config.h"
#include "run/model_shape.h"

namespace kvsim {
namespace {

Result<DecoderShape> shape_from_sizes(const ParsedOptions& options) {
  const auto head_dim = integer_option(options, "--head-dim", 0, 1, 1024);
  if (!head_dim) return head_dim.error();
  const auto kv_heads = integer_option(options, "--kv-heads", 2, 1, 1024);
  if (!kv_heads) return kv_heads.error();
  const auto gqa = integer_option(options, "--gqa", 1, 1, 1024);
  if (!gqa) return gqa.error();
  const std::int64_t product = *gqa * *kv_heads;
  const auto heads = integer_option(options, "--heads", product, 1, 1024);
  if (!heads) return heads.error();
  if (options.has("--gqa") && *heads != product) {
    return Error{ErrorKind::usage, fmt::format("heads is {}, which is not gqa × kv-heads = {} × {} "
                                               "= {}",
                                               *heads, *gqa, *kv_heads, product)};
  }
  DecoderShape shape;
  shape.name = "these sizes";
  shape.head_dim = *head_dim;
  shape.kv_heads = *kv_heads;
  shape.query_heads = *heads;
  shape.hidden = *heads * *head_dim;
  shape.ffn = 4 * shape.hidden;
  shape.layers = layers_of_sizes;
  return shape;
}

Result<NamedShape> shape_from_config(const ModelConfig& config, std::string source) {
  const auto shape = decoder_shape(config);
  if (!shape) return shape.error();
  return NamedShape{*shape, std::move(source), config.dtype, config.unused};
}

}  // namespace

Result<NamedShape> named_shape(const ParsedOptions& options) {
  constexpr std::array<std::string_view, 4> sources{"--config", "--model", "--tensors",
                                                    "--head-dim"};
  std::vector<std::string_view> given;
  for (const std::string_view source : sources) {
    if (options.has(source) && (source != "--head-dim" || given.empty())) given.push_back(source);
  }
  if (given.empty()) {
    return Error{ErrorKind::usage,
                 "predict has no shape; --head-dim N, such as --head-dim 128, --model NAME, "
                 "--config FILE or --tensors FILE is accepted"};
  }
  if (given.size() > 1) {
    return Error{ErrorKind::usage,
                 fmt::format("{} is given with {}; one of them is accepted", given[0], given[1])};
  }
  if (given[0] != "--head-dim" && given[0] != "--tensors") {
    for (const std::string_view size : {"--head-dim", "--gqa", "--kv-heads", "--heads"}) {
      if (!options.has(size)) continue;
      return Error{ErrorKind::usage,
                   fmt::format("{} is given with {}; one of them is accepted", size, given[0])};
    }
  }
  if (const auto path = options.value("--config")) {
    const auto config = load_config(*path);
    if (!config) return config.error();
    return shape_from_config(*config, printable(*path, path->size()));
  }
  if (const auto name = options.value("--model")) {
    const auto config = built_in_config(*name);
    if (!config) return config.error();
    return shape_from_config(*config, *name);
  }
  if (options.has("--tensors")) return NamedShape{{}, "the tensors' sizes", {}, {}};
  const auto shape = shape_from_sizes(options);
  if (!shape) return shape.error();
  return NamedShape{*shape, {}, {}, {}};
}

}  // namespace kvsim
