// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>

#include "model/config.h"
#include "model/quote.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

constexpr auto models = std::to_array<BuiltInModel>({
    {"llama-2-7b",
     R"({"model_type": "llama", "torch_dtype": "float16", "num_hidden_layers": 32,
         "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
         "num_key_value_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-05,
         "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false})",
     "config.json of meta-llama/Llama-2-7b-hf (public copies, read 2026-11)"},
    {"mistral-7b-v0.3",
     R"({"model_type": "mistral", "torch_dtype": "bfloat16", "num_hidden_layers": 32,
         "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 32768, "rms_norm_eps": 1e-05,
         "rope_theta": 1000000.0, "sliding_window": null, "hidden_act": "silu",
         "tie_word_embeddings": false})",
     "config.json of mistralai/Mistral-7B-v0.3 (public copies, read 2026-11)"},
    {"gemma-2-2b",
     R"({"model_type": "gemma2", "torch_dtype": "float32", "num_hidden_layers": 26,
         "hidden_size": 2304, "intermediate_size": 9216, "num_attention_heads": 8,
         "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "rms_norm_eps": 1e-06,
         "rope_theta": 10000.0, "sliding_window": 4096, "query_pre_attn_scalar": 256,
         "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
         "hidden_activation": "gelu_pytorch_tanh"})",
     "config.json of google/gemma-2-2b (public copies, read 2026-11)"},
    {"gemma-3-270m",
     R"({"model_type": "gemma3_text", "torch_dtype": "bfloat16", "num_hidden_layers": 18,
         "hidden_size": 640, "intermediate_size": 2048, "num_attention_heads": 4,
         "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144, "rms_norm_eps": 1e-06,
         "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 512,
         "_sliding_window_pattern": 6, "query_pre_attn_scalar": 256,
         "hidden_activation": "gelu_pytorch_tanh"})",
     "config.json of google/gemma-3-270m (public copies, read 2026-11)"},
    {"qwen2.5-7b",
     R"({"model_type": "qwen2", "torch_dtype": "bfloat16", "num_hidden_layers": 28,
         "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
         "num_key_value_heads": 4, "vocab_size": 152064, "rms_norm_eps": 1e-06,
         "rope_theta": 1000000.0, "use_sliding_window": false, "hidden_act": "silu",
         "tie_word_embeddings": false})",
     "config.json of Qwen/Qwen2.5-7B (public copies, read 2026-11)"},
    {"llama-3.1-8b",
     R"({"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": 32,
         "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-05,
         "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
         "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192}, "hidden_act": "silu",
         "tie_word_embeddings": false})",
     "config.json of meta-llama/Llama-3.1-8B (public copies, read 2026-11)"},
    {"smollm2-135m",
     R"({"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": 30,
         "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
         "num_key_value_heads": 3, "vocab_size": 49152, "rms_norm_eps": 1e-05,
         "rope_theta": 100000, "hidden_act": "silu", "tie_word_embeddings": true})",
     "config.json of HuggingFaceTB/SmolLM2-135M (public copies, read 2026-11)"},
});

constexpr auto names = [] {
  std::array<std::string_view, models.size()> list{};
  for (std::size_t i = 0; i < models.size(); ++i) list[i] = models[i].name;
  return list;
}();

}  // namespace

std::span<const BuiltInModel> built_in_models() { return models; }

Result<ModelConfig> built_in_config(std::string_view name) {
  for (const BuiltInModel& model : models) {
    if (model.name != name) continue;
    Result<ModelConfig> config = parse_config(model.config, model.name);
    if (config) config->name = model.name;
    return config;
  }
  const std::string_view near = softfloat::nearest(name, names);
  return Error{ErrorKind::usage,
               fmt::format("model {}; accepted: {}{}", quote(name), fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format(" (did you mean {}?)", near))};
}

}  // namespace kvsim
