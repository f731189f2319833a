// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "model/generation_config.h"
#include "model/quote.h"
#include "model/safetensors_header.h"
#include "model/shard_index.h"
#include "model/weight_values.h"

namespace kvsim {
namespace {

constexpr std::string_view single_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";

Error file_error(std::string_view path, std::string_view problem) {
  return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(path), problem)};
}

std::string inside(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

bool exists(const std::string& path) {
  std::error_code none;
  // A link to nothing counts: opening it then says so.
  return std::filesystem::symlink_status(path, none).type() !=
         std::filesystem::file_type::not_found;
}

/// A tensor of one of the files.
struct Found {
  std::size_t file = 0;
  Tensor tensor;
  bool used = false;
};

/// Opens the files of a folder and gathers their tensors, step by step; each step holds true or an
/// Error.
class FolderReader {
 public:
  explicit FolderReader(const std::string& folder) : folder_(folder) {}

  Result<Checkpoint> read() {
    for (const auto step :
         {&FolderReader::read_config, &FolderReader::open_files, &FolderReader::check_places,
          &FolderReader::take_weights, &FolderReader::check_tied, &FolderReader::check_rest}) {
      if (const Result<bool> status = (this->*step)(); !status) return status.error();
    }
    return Checkpoint(std::move(config_), std::move(files_), std::move(weights_));
  }

 private:
  Result<bool> read_config() {
    const std::string path = inside(folder_, "config.json");
    Result<ModelConfig> config = load_config(path);
    if (!config) return config.error();
    config_ = std::move(*config);
    std::string bos_path = path;
    std::string eos_path = path;
    if (const std::string more = inside(folder_, "generation_config.json"); exists(more)) {
      Result<GenerationConfig> generation = load_generation_config(more);
      if (!generation) return generation.error();
      if (!generation->eos.empty()) {
        config_.eos = std::move(generation->eos);
        eos_path = more;
      }
      if (generation->bos) {
        config_.bos = generation->bos;
        bos_path = more;
      }
    }
    for (const std::int64_t id : config_.eos) {
      if (id >= config_.vocabulary) return id_error(eos_path, "eos_token_id", id);
    }
    if (const std::int64_t id = config_.bos.value_or(0); id >= config_.vocabulary) {
      return id_error(bos_path, "bos_token_id", id);
    }
    return true;
  }

  [[nodiscard]] Error id_error(const std::string& path, std::string_view field,
                               std::int64_t id) const {
    return file_error(path, fmt::format("{} is {}; accepted: token ids below {}, the vocab_size",
                                        field, id, config_.vocabulary));
  }

  Result<bool> open_files() {
    if (exists(inside(folder_, single_name))) return open_file(std::string(single_name));
    const std::string path = inside(folder_, index_name);
    if (!exists(path)) {
      return file_error(folder_, fmt::format("holds neither {} nor {}; accepted: a folder with one "
                                             "of them",
                                             single_name, index_name));
    }
    const Result<MappedFile> file = MappedFile::open(path);
    if (!file) return file.error();
    const std::span<const std::byte> bytes = file->bytes();
    Result<ShardIndex> index =
        parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
    if (!index) return index.error();
    for (const std::string& name : index->files) {
      if (!exists(inside(folder_, name))) {
        return file_error(
            inside(folder_, name),
            fmt::format("is missing; accepted: every file that {} names", index_name));
      }
      if (const Result<bool> status = open_file(name); !status) return status.error();
      // More tensors than the index names: check_places names one of them, and no file can make
      // the list longer than that.
      if (found_.size() > index->entries.size()) break;
    }
    index_ = std::move(*index);
    return true;
  }

  Result<bool> open_file(const std::string& name) {
    CheckpointFile file{.name = name, .path = inside(folder_, name), .mapping = {}};
    Result<MappedFile> mapping = MappedFile::open(file.path);
    if (!mapping) return mapping.error();
    file.mapping = std::move(*mapping);
    Result<SafetensorsContent> content = parse_safetensors(file.mapping.bytes(), file.path);
    if (!content) return content.error();
    for (Tensor& tensor : content->tensors) found_.push_back({files_.size(), std::move(tensor)});
    files_.push_back(std::move(file));
    return true;
  }

  /// The index and the files must agree on every tensor, so that none is taken from a place that
  /// another reader would not look at.
  Result<bool> check_places() {
    const auto place = [](const Found& found) {
      return std::pair(std::string_view(found.tensor.name), found.file);
    };
    std::ranges::sort(found_, {}, place);
    if (!index_) return true;
    for (const Found& found : found_) {
      const auto entry = std::ranges::lower_bound(index_->entries, found.tensor.name, {},
                                                  &ShardIndex::Entry::tensor);
      const bool named = entry != index_->entries.end() && entry->tensor == found.tensor.name;
      if (named && entry->file == found.file) continue;
      return file_error(
          files_[found.file].path,
          fmt::format("tensor {} stands here, {} says {}; accepted: the same file",
                      quote(found.tensor.name), index_name,
                      named ? quote_path(index_->files[entry->file]) : "nothing of it"));
    }
    for (const ShardIndex::Entry& entry : index_->entries) {
      if (find(entry.tensor) != nullptr) continue;
      return file_error(files_[entry.file].path,
                        fmt::format("tensor {} is missing; accepted: every tensor that {} places "
                                    "in this file",
                                    quote(entry.tensor), index_name));
    }
    return true;
  }

  Found* find(std::string_view name) {
    const auto name_of = [](const Found& found) -> std::string_view { return found.tensor.name; };
    const auto place = std::ranges::lower_bound(found_, name, {}, name_of);
    return place != found_.end() && place->tensor.name == name ? &*place : nullptr;
  }

  Result<bool> take_weights() {
    const std::span<const WeightPrefix> prefixes = weight_prefixes();
    for (const WeightPrefix& prefix : prefixes) {
      if (find(fmt::format("{}embed_tokens.weight", prefix.model)) != nullptr) prefix_ = prefix;
    }
    const std::vector<ExpectedWeight> expected = expected_weights(config_, prefix_);
    for (const ExpectedWeight& weight : expected) {
      Found* found = find(weight.name);
      if (found == nullptr) {
        return file_error(index_ ? inside(folder_, index_name) : files_.front().path,
                          fmt::format("tensor {} {} is missing; accepted: the {} tensors of a {} "
                                      "model with {} layers",
                                      quote(weight.name), shape_text(weight.shape), expected.size(),
                                      config_.model_type, config_.layers));
      }
      Tensor& tensor = found->tensor;
      const std::string& path = files_[found->file].path;
      if (!is_weight_dtype(tensor.dtype)) {
        return file_error(path, fmt::format("tensor {} has dtype {}; accepted: BF16, F16, F32",
                                            quote(tensor.name), dtype_info(tensor.dtype).name));
      }
      if (tensor.shape != weight.shape) {
        return file_error(
            path, fmt::format("tensor {} has shape {}; accepted: {}, which is {} of config.json",
                              quote(tensor.name), shape_text(tensor.shape),
                              shape_text(weight.shape), weight.sizes));
      }
      found->used = true;
      weights_.push_back({weight.role, weight.layer, tensor.name, found->file, tensor.dtype,
                          tensor.shape, tensor.bytes});
    }
    return true;
  }

  /// A tied model may store its output matrix all the same, if it is the embedding.
  Result<bool> check_tied() {
    if (!config_.tied_embedding) return true;
    Found* output = find(fmt::format("{}lm_head.weight", prefix_.output));
    if (output == nullptr) return true;
    const Weight& embedding = weights_.front();
    if (output->tensor.dtype == embedding.dtype &&
        std::ranges::equal(output->tensor.bytes, embedding.bytes)) {
      output->used = true;
      return true;
    }
    return file_error(files_[output->file].path,
                      fmt::format("tensor {} differs from {}, although config.json says "
                                  "tie_word_embeddings; accepted: equal tensors, or "
                                  "\"tie_word_embeddings\": false",
                                  quote(output->tensor.name), quote(embedding.name)));
  }

  Result<bool> check_rest() {
    constexpr std::size_t most_named = 4;
    std::vector<std::string> names;
    std::size_t count = 0;
    std::size_t file = 0;
    for (const Found& found : found_) {
      if (found.used || is_ignored_tensor(found.tensor.name)) continue;
      if (count++ == 0) file = found.file;
      if (names.size() < most_named) names.push_back(quote(found.tensor.name));
    }
    if (count == 0) return true;
    if (count > most_named) names.push_back(fmt::format("{} more", count - most_named));
    return file_error(
        files_[file].path,
        fmt::format("tensor {}: no part of a {} model as config.json describes it; accepted: its "
                    "{} tensors",
                    fmt::join(names, ", "), config_.model_type, weights_.size()));
  }

  const std::string& folder_;
  ModelConfig config_;
  std::optional<ShardIndex> index_;
  std::vector<CheckpointFile> files_;
  std::vector<Found> found_;
  WeightPrefix prefix_ = weight_prefixes().front();
  std::vector<Weight> weights_;
};

}  // namespace

Result<Checkpoint> load_folder(const std::string& path) { return FolderReader(path).read(); }

}  // namespace kvsim
