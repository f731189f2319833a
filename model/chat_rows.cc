// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <array>
#include <vector>

#include "model/chat.h"
#include "model/quote.h"
#include "softfloat/suggest.h"

namespace kvsim {
namespace {

// Llama 3.1's template writes this date whatever the day is.
constexpr std::string_view llama3_system =
    "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
    "Today Date: 26 Jul 2024\n\n";

// scripts/models/chat_goldens renders Jinja templates; a test compares these rows with what came
// out.
constexpr auto rows = std::to_array<ChatTemplate>({
    {.name = "smollm2",
     .models = "SmolLM2 Instruct",
     .begin = "",
     .before_system = "<|im_start|>system\n",
     .after_system = "<|im_end|>\n",
     .default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
     .before_user = "<|im_start|>user\n",
     .after_user = "<|im_end|>\n",
     .before_assistant = "<|im_start|>assistant\n",
     .after_assistant = "<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .marks = {"<|im_start|>", "SmolLM, trained by Hugging Face"},
     .source = "tokenizer.chat_template of SmolLM2-135M-Instruct.Q4_1.gguf, 2025-02"},
    {.name = "gemma-3",
     .models = "Gemma 3 instruction-tuned",
     .begin = "<bos>",
     .system = ChatSystem::first_user,
     .before_system = "",
     .after_system = "\n\n",
     .default_system = std::nullopt,
     .before_user = "<start_of_turn>user\n",
     .after_user = "<end_of_turn>\n",
     .before_assistant = "<start_of_turn>model\n",
     .after_assistant = "<end_of_turn>\n",
     .answer = "<start_of_turn>model\n",
     .trim = ChatTrim::users_text,
     .holds_bos = true,
     .model_type = "gemma3_text",
     .marks = {"<start_of_turn>", "first_user_prefix"},
     .source = "tokenizer_config.json of google/gemma-3-4b-it, 2025-03"},
    {.name = "llama-2",
     .models = "Llama 2 Chat",
     .begin = "",
     .system = ChatSystem::first_user,
     .before_system = "<<SYS>>\n",
     .after_system = "\n<</SYS>>\n\n",
     .default_system = std::nullopt,
     .before_user = "<s>[INST] ",
     .after_user = " [/INST]",
     .before_assistant = " ",
     .after_assistant = " </s>",
     .answer = "",
     .trim = ChatTrim::users_whole,
     .holds_bos = true,
     .marks = {"[INST] ", "<<SYS>>"},
     .source = "tokenizer_config.json of meta-llama/Llama-2-7b-chat-hf, 2024-04"},
    {.name = "mistral-v0.3",
     .models = "Mistral 7B Instruct v0.3",
     .begin = "<s>",
     .system = ChatSystem::last_user,
     .before_system = "",
     .after_system = "\n\n",
     .default_system = std::nullopt,
     .before_user = "[INST] ",
     .after_user = "[/INST]",
     .before_assistant = " ",
     .after_assistant = "</s>",
     .answer = "",
     .trim = ChatTrim::assistants,
     .holds_bos = true,
     .marks = {"[INST] ", "[AVAILABLE_TOOLS] ["},
     .source = "tokenizer_config.json of mistralai/Mistral-7B-Instruct-v0.3, 2024-08"},
    {.name = "llama-3.1",
     .models = "Llama 3.1 Instruct",
     .begin = "<|begin_of_text|>",
     .before_system = llama3_system,
     .after_system = "<|eot_id|>",
     .default_system = "",
     .before_user = "<|start_header_id|>user<|end_header_id|>\n\n",
     .after_user = "<|eot_id|>",
     .before_assistant = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .after_assistant = "<|eot_id|>",
     .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .trim = ChatTrim::everything,
     .holds_bos = true,
     .marks = {"<|start_header_id|>", "builtin_tools"},
     .source = "tokenizer_config.json of meta-llama/Llama-3.1-8B-Instruct, 2024-09"},
    {.name = "qwen2.5",
     .models = "Qwen 2.5 Instruct",
     .begin = "",
     .before_system = "<|im_start|>system\n",
     .after_system = "<|im_end|>\n",
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     .before_user = "<|im_start|>user\n",
     .after_user = "<|im_end|>\n",
     .before_assistant = "<|im_start|>assistant\n",
     .after_assistant = "<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .marks = {"<|im_start|>", "You are Qwen, created by Alibaba Cloud."},
     .source = "tokenizer_config.json of Qwen/Qwen2.5-7B-Instruct, 2024-09"},
    {.name = "qwen3",
     .models = "Qwen 3",
     .begin = "",
     .before_system = "<|im_start|>system\n",
     .after_system = "<|im_end|>\n",
     .default_system = std::nullopt,
     .before_user = "<|im_start|>user\n",
     .after_user = "<|im_end|>\n",
     .before_assistant = "<|im_start|>assistant\n",
     .after_assistant = "<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .drops_thinking = true,
     .marks = {"<|im_start|>", "reasoning_content"},
     .source = "tokenizer_config.json of Qwen/Qwen3-0.6B, 2025-04"},
    {.name = "qwen2",
     .models = "Qwen 2 Instruct",
     .begin = "",
     .before_system = "<|im_start|>system\n",
     .after_system = "<|im_end|>\n",
     .default_system = "You are a helpful assistant.",
     .before_user = "<|im_start|>user\n",
     .after_user = "<|im_end|>\n",
     .before_assistant = "<|im_start|>assistant\n",
     .after_assistant = "<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .marks = {"<|im_start|>", "You are a helpful assistant."},
     .source = "tokenizer_config.json of Qwen/Qwen2-7B-Instruct, 2024-06"},
});

}  // namespace

std::span<const ChatTemplate> chat_templates() { return rows; }

Result<const ChatTemplate*> find_chat_template(std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(rows.size());
  for (const ChatTemplate& row : rows) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  const std::string_view near = softfloat::nearest(name, names);
  return Error{ErrorKind::usage,
               fmt::format("unknown chat template {}; accepted are {}{}", quote(name),
                           fmt::join(names, ", "),
                           near.empty() ? "" : fmt::format("; did you mean {}?", near))};
}

}  // namespace kvsim
