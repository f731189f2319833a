// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "model/checkpoint_folder.h"
#include "model/llama2c.h"
#include "model/quote.h"
#include "model/safetensors_header.h"
#include "model/weight_values.h"
#include "softfloat/sha256.h"

namespace kvsim {

Checkpoint::Checkpoint(ModelConfig config, std::vector<CheckpointFile> files,
                       std::vector<Weight> weights)
    : config_(std::move(config)), files_(std::move(files)), weights_(std::move(weights)) {
  for (std::int64_t layer = 0; layer <= config_.layers; ++layer) {
    const auto begin = std::ranges::lower_bound(weights_, layer, {}, &Weight::layer);
    layer_begin_.push_back(static_cast<std::size_t>(begin - weights_.begin()));
  }
}

std::span<const Weight> Checkpoint::layer(std::int64_t i) const {
  const std::span<const Weight> all = weights_;
  if (i < 0) return all.first(layer_begin_.front());
  if (i >= config_.layers) return {};
  const std::size_t begin = layer_begin_[static_cast<std::size_t>(i)];
  return all.subspan(begin, layer_begin_[static_cast<std::size_t>(i) + 1] - begin);
}

const Weight* Checkpoint::find(WeightRole role, std::int64_t i) const {
  if (role == WeightRole::output && config_.tied_embedding) role = WeightRole::embedding;
  const std::span<const Weight> some = layer(i);
  const auto found = std::ranges::find(some, role, &Weight::role);
  return found == some.end() ? nullptr : &*found;
}

Result<bool> Checkpoint::read_rows(const Weight& weight, std::int64_t first,
                                   std::span<float> out) const {
  const auto columns = static_cast<std::size_t>(weight.columns());
  const std::size_t count = out.size() / columns;
  const bool fits = first >= 0 && first <= weight.rows() && out.size() % columns == 0 &&
                    count <= static_cast<std::size_t>(weight.rows() - first);
  if (!fits) {
    return Error{ErrorKind::usage,
                 fmt::format("{} numbers from row {} of tensor {}; accepted: whole rows of {}",
                             out.size(), first, quote(weight.name), shape_text(weight.shape))};
  }
  const std::size_t width = static_cast<std::size_t>(dtype_info(weight.dtype).bits) / 8;
  const std::size_t begin = static_cast<std::size_t>(first) * columns;
  const std::size_t bad =
      convert_weights(weight.dtype, weight.bytes.subspan(begin * width, out.size() * width), out);
  if (bad == out.size()) return true;
  return Error{ErrorKind::file,
               fmt::format("{}: tensor {} is {} at row {}, column {}; accepted: finite numbers",
                           quote_path(files_[weight.file].path), quote(weight.name),
                           std::isnan(out[bad]) ? "NaN" : "infinite", (begin + bad) / columns,
                           bad % columns)};
}

Result<std::vector<float>> Checkpoint::read(const Weight& weight) const {
  std::vector<float> out(static_cast<std::size_t>(weight.rows() * weight.columns()));
  const Result<bool> status = read_rows(weight, 0, out);
  if (!status) return status.error();
  return out;
}

std::string Checkpoint::identity() const {
  if (files_.size() == 1) return sha256(files_.front().mapping.bytes());
  std::vector<const CheckpointFile*> sorted;
  sorted.reserve(files_.size());
  for (const CheckpointFile& file : files_) sorted.push_back(&file);
  std::ranges::sort(sorted, {}, &CheckpointFile::name);
  std::string lines;
  for (const CheckpointFile* file : sorted) {
    lines += fmt::format("{}  {}\n", sha256(file->mapping.bytes()), file->name);
  }
  return sha256(std::as_bytes(std::span(lines)));
}

Result<Checkpoint> load_checkpoint(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return load_folder(path);
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  constexpr std::string_view gguf = "GGUF";
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() >= gguf.size() && std::memcmp(bytes.data(), gguf.data(), gguf.size()) == 0) {
    return Error{ErrorKind::file,
                 fmt::format("{}: is a GGUF file; accepted: a folder with config.json and "
                             "safetensors, a llama2.c model (kvsim import makes such a folder)",
                             quote_path(path))};
  }
  return load_llama2c(path);
}

}  // namespace kvsim
