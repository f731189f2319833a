// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/studies/localise_patches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace kvsim::experiments {
namespace {

/// 0, 1, …, count − 1.
std::vector<std::int64_t> first_layers(std::int64_t count) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(count));
  std::iota(layers.begin(), layers.end(), 0);
  return layers;
}

class PatchList {
 public:
  PatchList(const StateShape& shape, std::int64_t prompt_rows, std::int64_t cached_rows)
      : shape_(shape),
        prompt_rows_(prompt_rows),
        cached_rows_(cached_rows),
        whole_(whole_cache(shape, cached_rows)) {}

  std::vector<NamedPatch> take() {
    add_checks();
    add_parts();
    add_layers();
    add_positions();
    add_hidden(first_layers(shape_.layers));
    return std::move(patches_);
  }

 private:
  void add(std::string group, std::string name, const CacheMask& mask) {
    patches_.push_back({std::move(group), std::move(name), {mask, {}}});
  }
  void add_checks() {
    const StatePatch everything{whole_, first_layers(shape_.layers)};
    patches_.push_back({"check", "own state put back", everything, true, true});
    patches_.push_back({"check", "K, V and hidden states", everything, false, true});
  }
  void add_parts();
  void add_layers();
  void add_positions();
  void add_hidden(const std::vector<std::int64_t>& layers);

  StateShape shape_;
  std::int64_t prompt_rows_;
  std::int64_t cached_rows_;
  CacheMask whole_;
  std::vector<NamedPatch> patches_;
};

void PatchList::add_parts() {
  CacheMask keys = whole_;
  keys.values = false;
  CacheMask values = whole_;
  values.keys = false;
  for (const auto& [name, mask] :
       {std::pair{"K and V", whole_}, std::pair{"K", keys}, std::pair{"V", values}}) {
    add("part", name, mask);
    patches_.back().continues = true;
  }
  const std::int64_t half = shape_.layers / 2;
  for (const auto& [name, range] :
       {std::pair{"first half of the layers", IndexRange{0, half}},
        std::pair{"second half of the layers", IndexRange{half, shape_.layers - half}}}) {
    if (range.count == 0) continue;
    CacheMask mask = whole_;
    mask.layers = range;
    add("part", name, mask);
  }
  for (std::int64_t head = 0; shape_.kv_heads > 1 && head < shape_.kv_heads; ++head) {
    CacheMask mask = whole_;
    mask.heads = {head, 1};
    add("part", fmt::format("K/V head {}", head), mask);
  }
}

void PatchList::add_layers() {
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    CacheMask mask = whole_;
    mask.layers = {layer, 1};
    add("layer", fmt::to_string(layer), mask);
    mask.layers = {0, layer + 1};
    add("layers", fmt::to_string(layer), mask);
  }
}

void PatchList::add_positions() {
  const auto rows = [&](std::string name, const IndexRange& range) {
    CacheMask mask = whole_;
    mask.rows = range;
    add("position", std::move(name), mask);
  };
  rows("prompt", {0, prompt_rows_});
  rows("generated", {prompt_rows_, cached_rows_ - prompt_rows_});
  for (const std::int64_t last : std::array<std::int64_t, 3>{1, 4, 16}) {
    const std::int64_t count = std::min(last, cached_rows_);
    rows(fmt::format("last {}", last), {cached_rows_ - count, count});
  }
}

void PatchList::add_hidden(const std::vector<std::int64_t>& layers) {
  for (const std::int64_t layer : layers) {
    patches_.push_back({"hidden", fmt::to_string(layer), {{}, {layer}}});
  }
  patches_.push_back({"part", "hidden states of all layers", {{}, layers}, false, true});
}

}  // namespace

std::vector<NamedPatch> fork_patches(const StateShape& shape, std::int64_t prompt_rows,
                                     std::int64_t cached_rows) {
  return PatchList(shape, prompt_rows, cached_rows).take();
}

std::vector<NamedPatch> first_step_patches(std::int64_t layers) {
  constexpr std::int64_t most = 8;
  std::vector<NamedPatch> patches;
  patches.push_back({"check", "own state put back", {{}, first_layers(layers)}, true});
  const std::int64_t count = std::min(layers, most);
  for (std::int64_t i = 1; i <= count; ++i) {
    const std::int64_t layer = i * layers / count - 1;
    patches.push_back({"hidden", fmt::to_string(layer), {{}, {layer}}});
    patches.push_back({"hiddens", fmt::to_string(layer), {{}, first_layers(layer + 1)}});
  }
  return patches;
}

}  // namespace kvsim::experiments
