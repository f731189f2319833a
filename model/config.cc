// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/config_families.h"
#include "model/config_fields.h"
#include "model/mapped_file.h"
#include "model/quote.h"

namespace kvsim {
namespace {

constexpr auto family_list = [] {
  std::array<ConfigFamily, config_rules.size()> list{};
  for (std::size_t i = 0; i < config_rules.size(); ++i) list[i] = config_rules[i].family;
  return list;
}();

constexpr std::int64_t largest_size = std::int64_t{1} << 20;

struct ActivationName {
  std::string_view in_file;
  std::string_view meaning;
};
constexpr auto activations = std::to_array<ActivationName>({
    {"silu", "silu"},
    {"swish", "silu"},
    {"gelu", "gelu"},
    {"gelu_pytorch_tanh", "gelu_tanh"},
    {"gelu_new", "gelu_tanh"},
});

/// Fills a ModelConfig from the fields; remembers the first problem.
class ConfigReader {
 public:
  ConfigReader(ConfigFields& fields, const FamilyRules& rules) : fields_(fields), rules_(rules) {}

  ModelConfig read() {
    config_.model_type = rules_.family.model_type;
    config_.name = rules_.family.model_type;
    sizes();
    arithmetic();
    rope();
    windows();
    texts();
    return std::move(config_);
  }

 private:
  void sizes() {
    config_.layers = fields_.required_size("num_hidden_layers", 4096);
    config_.hidden = fields_.required_size("hidden_size", largest_size);
    config_.ffn = fields_.required_size("intermediate_size", largest_size);
    config_.query_heads = fields_.required_size("num_attention_heads", 1024);
    config_.kv_heads = fields_.size("num_key_value_heads", 1024).value_or(config_.query_heads);
    config_.vocabulary = fields_.required_size("vocab_size", largest_size);
    const auto head_dim = fields_.size("head_dim", 1024);
    if (fields_.failed()) return;
    if (config_.query_heads % config_.kv_heads != 0) {
      fields_.fail(fmt::format("field \"num_key_value_heads\" is {}; accepted: divisors of {}",
                               config_.kv_heads, config_.query_heads));
      return;
    }
    if (head_dim) {
      config_.head_dim = *head_dim;
    } else if (rules_.head_dim > 0) {
      config_.head_dim = rules_.head_dim;
    } else if (config_.hidden % config_.query_heads != 0) {
      fields_.fail(
          fmt::format("field \"hidden_size\" is {}; accepted without head_dim: multiples "
                      "of {}",
                      config_.hidden, config_.query_heads));
    } else {
      config_.head_dim = config_.hidden / config_.query_heads;
    }
    if (config_.head_dim % 2 != 0) {
      fields_.fail(fmt::format("head_dim is {}; accepted: even sizes", config_.head_dim));
    }
  }

  void arithmetic() {
    config_.dtype = fields_.text("torch_dtype").value_or(fields_.text("dtype").value_or(""));
    config_.norm_epsilon = fields_.positive("rms_norm_eps").value_or(rules_.norm_epsilon);
    const auto gelu = fields_.text("hidden_activation");
    const auto plain = fields_.text("hidden_act");
    // Gemma's hidden_act is what its class ignores in favour of hidden_activation.
    const std::string_view activation =
        gelu ? *gelu : (plain && !rules_.gemma ? *plain : rules_.activation);
    const auto* row = std::ranges::find(activations, activation, &ActivationName::in_file);
    if (row == activations.end()) {
      fields_.fail(
          fmt::format("field \"hidden_act\" is {}; accepted: silu, swish, gelu, "
                      "gelu_pytorch_tanh, gelu_new",
                      quote(activation)));
      return;
    }
    config_.activation = row->meaning;
    // Where the class does not read a field, it stays unused.
    const bool bias = rules_.attention_bias && fields_.boolean("attention_bias").value_or(false);
    config_.qkv_bias = bias || rules_.always_qkv_bias;
    config_.output_bias = bias;
    config_.mlp_bias = rules_.mlp_bias && fields_.boolean("mlp_bias").value_or(false);
    config_.qk_norm = rules_.qk_norm;
    config_.norm_weight_plus_one = rules_.gemma;
    config_.sandwich_norms = rules_.gemma;
    config_.scaled_embedding = rules_.gemma;
    config_.tied_embedding = fields_.boolean("tie_word_embeddings").value_or(rules_.gemma);
    if (rules_.query_scalar > 0) {
      config_.query_pre_attn_scalar =
          fields_.positive("query_pre_attn_scalar").value_or(rules_.query_scalar);
      // Gemma 3's class has the field and does not use it.
      if (rules_.attention_cap > 0) {
        config_.attention_soft_cap = cap("attn_logit_softcapping", rules_.attention_cap);
      }
      config_.final_soft_cap = cap("final_logit_softcapping", rules_.final_cap);
    }
  }

  /// null means no cap; a silent file means the family's default.
  double cap(std::string_view name, double silent) {
    if (fields_.is_null(name)) return 0;
    return fields_.positive(name).value_or(silent);
  }

  void rope() {
    config_.rope_base = fields_.positive("rope_theta").value_or(rules_.rope_base);
    if (const auto base = fields_.positive("rope_local_base_freq"))
      config_.window_rope_base = *base;
    if (rules_.family.model_type == "gemma3_text" && config_.window_rope_base == 0) {
      config_.window_rope_base = 10000;
    }
    scaling("rope_scaling");
    // transformers 5 writes rope_theta and rope_scaling into one object, Gemma 3 by layer type.
    if (fields_.has("rope_parameters.full_attention")) {
      scaling("rope_parameters.full_attention");
      const auto local = fields_.positive("rope_parameters.sliding_attention.rope_theta");
      if (local) config_.window_rope_base = *local;
      const auto kind = fields_.text("rope_parameters.sliding_attention.rope_type");
      if (kind && *kind != "default") {
        fields_.fail(
            fmt::format("field \"rope_parameters.sliding_attention.rope_type\" is {}; "
                        "accepted: default",
                        quote(*kind)));
      }
    } else {
      scaling("rope_parameters");
    }
  }

  void scaling(const std::string& object) {
    const auto name = [&](std::string_view member) { return fmt::format("{}.{}", object, member); };
    if (const auto base = fields_.positive(name("rope_theta"))) config_.rope_base = *base;
    auto kind = fields_.text(name("rope_type"));
    const auto old_kind = fields_.text(name("type"));
    if (!kind) kind = old_kind;
    if (!kind) {
      if (fields_.has(name("factor"))) {
        fields_.fail(fmt::format("field {} has no \"rope_type\"; accepted: default, linear, llama3",
                                 quote(object)));
      }
      return;
    }
    if (*kind == "default") return;
    if (*kind == "linear") {
      config_.rope_scaling = ConfigRopeScaling::linear;
      config_.rope_factor = fields_.required_positive(name("factor"));
    } else if (*kind == "llama3") {
      config_.rope_scaling = ConfigRopeScaling::llama3;
      config_.rope_factor = fields_.required_positive(name("factor"));
      config_.rope_low_frequency_factor = fields_.required_positive(name("low_freq_factor"));
      config_.rope_high_frequency_factor = fields_.required_positive(name("high_freq_factor"));
      config_.rope_original_positions =
          fields_.required_size(name("original_max_position_embeddings"), std::int64_t{1} << 40);
    } else {
      fields_.fail(
          fmt::format("field {} is {}, which is not supported; accepted: default, linear, "
                      "llama3",
                      quote(name("rope_type")), quote(*kind)));
    }
  }

  void windows() {
    if (fields_.failed()) return;
    const auto count = static_cast<std::size_t>(config_.layers);
    config_.has_window.assign(count, false);
    const bool null_window = fields_.is_null("sliding_window");
    const auto window = fields_.size("sliding_window", std::int64_t{1} << 40);
    const bool flag = fields_.boolean("use_sliding_window").value_or(false);
    const auto full_layers = fields_.whole("max_window_layers");
    auto pattern = fields_.size("sliding_window_pattern", 4096);
    const auto hidden_pattern = fields_.size("_sliding_window_pattern", 4096);
    if (!pattern) pattern = hidden_pattern;
    const std::vector<std::string> types = fields_.texts("layer_types");
    if (fields_.failed()) return;
    const std::int64_t width = null_window ? 0 : window.value_or(rules_.window);
    if (width == 0 || (rules_.window_needs_flag && !flag)) return;
    if (!types.empty()) {
      if (!window_by_type(types)) return;
    } else if (rules_.window_needs_flag) {
      // Qwen: the first max_window_layers layers see everything.
      for (std::size_t i = 0; i < count; ++i) {
        config_.has_window[i] = static_cast<std::int64_t>(i) >= full_layers.value_or(28);
      }
    } else {
      const auto every =
          static_cast<std::size_t>(rules_.pattern == 0 ? 0 : pattern.value_or(rules_.pattern));
      for (std::size_t i = 0; i < count; ++i) {
        config_.has_window[i] = every == 0 || (i + 1) % every != 0;
      }
    }
    config_.window = width;
  }

  /// What changes no arithmetic, but where a text may begin and end.
  void texts() {
    config_.max_positions = fields_.unused_size("max_position_embeddings");
    config_.eos = fields_.token_ids("eos_token_id");
    const std::vector<std::int64_t> bos = fields_.token_ids("bos_token_id");
    if (!bos.empty()) config_.bos = bos.front();
  }

  bool window_by_type(const std::vector<std::string>& types) {
    if (types.size() != config_.has_window.size()) {
      fields_.fail(fmt::format("field \"layer_types\" has {} entries; accepted: {}", types.size(),
                               config_.has_window.size()));
      return false;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention") {
        fields_.fail(
            fmt::format("field \"layer_types[{}]\" is {}, which is not supported; "
                        "accepted: full_attention, sliding_attention",
                        i, quote(types[i])));
        return false;
      }
      config_.has_window[i] = types[i] == "sliding_attention";
    }
    return true;
  }

  ConfigFields& fields_;
  const FamilyRules& rules_;
  ModelConfig config_;
};

}  // namespace

std::span<const ConfigFamily> config_families() { return family_list; }

Result<ModelConfig> parse_config(std::string_view text, std::string_view source) {
  const auto error = [&](std::string_view problem) {
    return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(source), problem)};
  };
  Result<std::vector<JsonField>> list = read_json_fields(text);
  if (!list) return error(list.error().message);
  ConfigFields fields(std::move(*list));
  fields.enter_text_config();
  const auto type = fields.text("model_type");
  if (fields.failed()) return error(fields.problem());
  const auto* rules =
      std::ranges::find(config_rules, type.value_or(""),
                        [](const FamilyRules& row) { return row.family.model_type; });
  if (rules == config_rules.end()) {
    std::vector<std::string_view> accepted;
    accepted.reserve(config_rules.size());
    for (const FamilyRules& row : config_rules) accepted.push_back(row.family.model_type);
    return error(fmt::format("field \"model_type\" is {}; accepted: {}",
                             type ? quote(*type) : "missing", fmt::join(accepted, ", ")));
  }
  fields.refuse_unsupported();
  ModelConfig config = ConfigReader(fields, *rules).read();
  if (fields.failed()) return error(fields.problem());
  config.unused = fields.unused();
  return config;
}

Result<ModelConfig> load_config(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  return parse_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace kvsim
