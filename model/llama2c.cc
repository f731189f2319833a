// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/llama2c.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <utility>

#include "model/quote.h"

namespace kvsim {

static_assert(std::endian::native == std::endian::little, "values are copied as they stand");

namespace {

using Role = WeightRole;
using Size = WeightSize;

struct HeaderField {
  std::string_view name;
  std::int64_t most;
};
constexpr std::int64_t largest_size = std::int64_t{1} << 20;
constexpr std::size_t vocabulary_field = 5;
// The same limits as of config.json.
constexpr auto header_fields = std::to_array<HeaderField>({
    {"dim", largest_size},
    {"hidden_dim", largest_size},
    {"n_layers", 4096},
    {"n_heads", 1024},
    {"n_kv_heads", 1024},
    {"vocab_size", largest_size},
    {"seq_len", largest_size},
});
constexpr std::size_t header_bytes = header_fields.size() * 4;
// "ak42", the first word of the later export versions.
constexpr std::uint32_t later_magic = 0x616B3432;

/// A stretch of the file: one array of each layer in turn, or one of the whole model.
struct Stretch {
  Role role;
  std::string_view name;
  Size rows;
  Size columns;
  bool by_layer;
};

// Source: memory_map_weights of llama2.c (run.c, 2023-08) for the order of the file.
constexpr auto first_stretches = std::to_array<Stretch>({
    {Role::embedding, "token_embedding_table", Size::vocabulary, Size::hidden, false},
    {Role::attention_norm, "rms_att_weight", Size::hidden, Size::none, true},
    {Role::q, "wq", Size::query, Size::hidden, true},
    {Role::k, "wk", Size::kv, Size::hidden, true},
    {Role::v, "wv", Size::kv, Size::hidden, true},
    {Role::o, "wo", Size::hidden, Size::query, true},
    {Role::mlp_norm, "rms_ffn_weight", Size::hidden, Size::none, true},
    {Role::gate, "w1", Size::ffn, Size::hidden, true},
    {Role::down, "w2", Size::hidden, Size::ffn, true},
    {Role::up, "w3", Size::ffn, Size::hidden, true},
    {Role::final_norm, "rms_final_weight", Size::hidden, Size::none, false},
});
// Between them stand two tables of cos and sin, [seq_len, head_dim / 2], which nobody reads.
constexpr Stretch output_stretch{Role::output, "wcls", Size::vocabulary, Size::hidden, false};

std::int64_t values_of(const ModelConfig& config, const Stretch& stretch) {
  const std::int64_t one = weight_size(config, stretch.rows) * weight_size(config, stretch.columns);
  return one * (stretch.by_layer ? config.layers : 1);
}

std::int64_t table_values(const ModelConfig& config) {
  return config.max_positions * config.head_dim;
}

/// How many bytes the header says that the file has. The limits keep it below 2^60.
std::int64_t file_bytes(const ModelConfig& config) {
  std::int64_t values = table_values(config);
  for (const Stretch& stretch : first_stretches) values += values_of(config, stretch);
  if (!config.tied_embedding) values += values_of(config, output_stretch);
  return static_cast<std::int64_t>(header_bytes) + 4 * values;
}

/// The configuration, or an Error without the file's name.
Result<ModelConfig> read_header(std::span<const std::byte> file) {
  const auto fail = [](std::string problem) { return Error{ErrorKind::file, std::move(problem)}; };
  if (file.size() < header_bytes) {
    return fail(fmt::format("has {} bytes; accepted: a llama2.c model, which has a header of {}",
                            file.size(), header_bytes));
  }
  std::array<std::int32_t, header_fields.size()> header{};
  std::memcpy(header.data(), file.data(), header_bytes);
  if (std::bit_cast<std::uint32_t>(header[0]) == later_magic) {
    return fail(
        fmt::format("is version {} of llama2.c's formats; accepted: the one without a "
                    "version (export.py --version 0)",
                    header[1]));
  }
  ModelConfig config;
  config.tied_embedding = header[vocabulary_field] > 0;
  std::array<std::int64_t, header_fields.size()> sizes{};
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool may_be_negative = i == vocabulary_field;
    sizes[i] = header[i];
    if (may_be_negative && sizes[i] < 0) sizes[i] = -sizes[i];
    if (sizes[i] < 1 || sizes[i] > header_fields[i].most) {
      return fail(fmt::format("{} is {}; accepted: a llama2.c model, where it is {}1 to {}",
                              header_fields[i].name, header[i],
                              may_be_negative ? "plus or minus " : "", header_fields[i].most));
    }
  }
  config.name = "llama2.c";
  config.model_type = "llama";
  config.dtype = "float32";
  config.hidden = sizes[0];
  config.ffn = sizes[1];
  config.layers = sizes[2];
  config.query_heads = sizes[3];
  config.kv_heads = sizes[4];
  config.vocabulary = sizes[5];
  config.max_positions = sizes[6];
  config.head_dim = config.hidden / config.query_heads;
  if (config.hidden % config.query_heads != 0 || config.head_dim % 2 != 0 ||
      config.head_dim > 1024) {
    return fail(
        fmt::format("dim is {} for {} heads; accepted: an even multiple of the heads, at "
                    "most 1024 times",
                    config.hidden, config.query_heads));
  }
  if (config.query_heads % config.kv_heads != 0) {
    return fail(fmt::format("n_kv_heads is {}; accepted: divisors of {}", config.kv_heads,
                            config.query_heads));
  }
  config.norm_epsilon = 1e-5;
  config.activation = "silu";
  config.rope_base = 10000;
  config.rope_interleaved = true;
  config.has_window.assign(static_cast<std::size_t>(config.layers), false);
  // Llama 2's tokenizer: 1 begins a text, 2 ends it. In the training data of llama2.c texts follow
  // each other without an end, so that run.c takes the next beginning for it.
  config.bos = 1;
  config.eos = {1, 2};
  return config;
}

class WeightTaker {
 public:
  WeightTaker(const ModelConfig& config, std::span<const std::byte> values)
      : config_(config), rest_(values) {}

  void take(const Stretch& stretch) {
    const std::int64_t count = stretch.by_layer ? config_.layers : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      Weight weight;
      weight.role = stretch.role;
      weight.layer = stretch.by_layer ? i : -1;
      weight.name =
          stretch.by_layer ? fmt::format("{}[{}]", stretch.name, i) : std::string(stretch.name);
      weight.shape = {weight_size(config_, stretch.rows)};
      if (stretch.columns != Size::none) {
        weight.shape.push_back(weight_size(config_, stretch.columns));
      }
      weight.bytes = skip(weight.rows() * weight.columns());
      weights_.push_back(std::move(weight));
    }
  }
  std::span<const std::byte> skip(std::int64_t values) {
    const std::size_t size = static_cast<std::size_t>(values) * 4;
    const std::span<const std::byte> bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  [[nodiscard]] std::vector<Weight>& weights() { return weights_; }

 private:
  const ModelConfig& config_;
  std::span<const std::byte> rest_;
  std::vector<Weight> weights_;
};

}  // namespace

Result<Llama2cContent> parse_llama2c(std::span<const std::byte> file, std::string_view source) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(source), problem)};
  };
  Result<ModelConfig> config = read_header(file);
  if (!config) return fail(config.error().message);
  const std::int64_t size = file_bytes(*config);
  if (static_cast<std::uint64_t>(size) != file.size()) {
    return fail(
        fmt::format("has {} bytes; accepted: {}, as its header says (dim {}, hidden_dim "
                    "{}, n_layers {}, n_heads {}, n_kv_heads {}, vocab_size {}{}, seq_len "
                    "{})",
                    file.size(), size, config->hidden, config->ffn, config->layers,
                    config->query_heads, config->kv_heads, config->tied_embedding ? "" : "-",
                    config->vocabulary, config->max_positions));
  }
  WeightTaker taker(*config, file.subspan(header_bytes));
  for (const Stretch& stretch : first_stretches) taker.take(stretch);
  taker.skip(table_values(*config));
  if (!config->tied_embedding) taker.take(output_stretch);
  Llama2cContent content{.config = std::move(*config), .weights = std::move(taker.weights())};
  const auto place = [](const Weight& weight) {
    return std::pair(weight.layer, weight.bytes.data());
  };
  std::ranges::sort(content.weights, {}, place);
  return content;
}

Result<Checkpoint> load_llama2c(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  Result<Llama2cContent> content = parse_llama2c(file->bytes(), path);
  if (!content) return content.error();
  std::vector<CheckpointFile> files(1);
  files[0].name = std::filesystem::path(path).filename().string();
  files[0].path = path;
  files[0].mapping = std::move(*file);
  return Checkpoint(std::move(content->config), std::move(files), std::move(content->weights));
}

}  // namespace kvsim
