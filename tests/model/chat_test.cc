// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The expected texts are what the models' own Jinja templates gave (scripts/models/chat_goldens).
#include "model/chat.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/model/test_file.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

ChatRole role_named(const std::string& name) {
  if (name == "system") return ChatRole::system;
  return name == "user" ? ChatRole::user : ChatRole::assistant;
}

TEST(Chat, EqualsTheModelsOwnTemplates) {
  std::ifstream file(KVSIM_SOURCE_DIR "/tests/golden/chat.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::set<std::string> seen;
  for (const nlohmann::json& one : golden["cases"]) {
    const std::string name = one["template"];
    SCOPED_TRACE(name + ", " + one["title"].get<std::string>());
    seen.insert(name);
    const auto row = find_chat_template(name);
    ASSERT_TRUE(row) << row.error().message;
    std::vector<ChatMessage> messages;
    for (const nlohmann::json& message : one["messages"]) {
      messages.push_back({role_named(message["role"]), message["content"]});
    }
    const auto text = apply_chat(**row, messages);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(*text, one["text"].get<std::string>());
  }
  EXPECT_EQ(seen.size(), chat_templates().size());
}

TEST(Chat, RefusesOtherConversations) {
  const ChatTemplate& row = chat_templates().front();
  const ChatMessage system{ChatRole::system, "s"};
  const ChatMessage user{ChatRole::user, "u"};
  const ChatMessage assistant{ChatRole::assistant, "a"};
  using List = std::vector<ChatMessage>;
  for (const List& messages :
       {List{}, List{system}, List{assistant}, List{user, user}, List{user, assistant},
        List{user, system}, List{system, system, user}, List{system, assistant, user}}) {
    const auto text = apply_chat(row, messages);
    ASSERT_FALSE(text) << messages.size();
    EXPECT_EQ(text.error().kind, ErrorKind::usage);
    EXPECT_EQ(text.error().message.find('\n'), std::string::npos);
  }
}

TEST(Chat, NamesWhatIsAccepted) {
  const auto row = find_chat_template("qwen25");
  ASSERT_FALSE(row);
  EXPECT_NE(row.error().message.find("did you mean qwen2.5?"), std::string::npos);
  for (const ChatTemplate& each : chat_templates()) {
    EXPECT_EQ(*find_chat_template(each.name), &each);
    EXPECT_FALSE(each.source.empty());
  }
}

class ChatOfFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

// Lines of the templates that tell the families apart.
TEST_F(ChatOfFolder, IsRecognisedByItsTemplate) {
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"smollm2",
       "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by "
       "Hugging Face<|im_end|>"},
      {"gemma-3", "set first_user_prefix … <start_of_turn>"},
      {"llama-2", "'<<SYS>>\\n' … bos_token + '[INST] '"},
      {"mistral-v0.3", "\"[AVAILABLE_TOOLS] [\" … \"[INST] \""},
      {"llama-3.1", "builtin_tools is defined … <|start_header_id|>"},
      {"qwen2", "<|im_start|>system\nYou are a helpful assistant.<|im_end|>"},
      {"qwen2.5",
       "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
       "assistant.<|im_end|>"},
      {"qwen3", "reasoning_content … <|im_start|>"},
  };
  for (const auto& [name, line] : lines) {
    write("tokenizer_config.json", nlohmann::json{{"chat_template", line}}.dump());
    const auto row = chat_template_of(folder_.string());
    ASSERT_TRUE(row) << name << ": " << row.error().message;
    EXPECT_EQ((*row)->name, name);
  }
  write("chat_template.jinja", lines[1].second);  // goes first
  EXPECT_EQ((*chat_template_of(folder_.string()))->name, "gemma-3");
}

TEST_F(ChatOfFolder, FallsBackToTheModelType) {
  const std::string sizes =
      R"("num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 8,
         "num_attention_heads": 2, "vocab_size": 16})";
  write("config.json", R"({"model_type": "gemma3_text", )" + sizes);
  const auto gemma = chat_template_of(folder_.string());
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ((*gemma)->name, "gemma-3");
  write("config.json", R"({"model_type": "llama", )" + sizes);
  EXPECT_FALSE(chat_template_of(folder_.string()));
}

TEST_F(ChatOfFolder, RefusesAnUnknownTemplate) {
  write("tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  const auto row = chat_template_of(folder_.string());
  ASSERT_FALSE(row);
  EXPECT_EQ(row.error().kind, ErrorKind::file);
  EXPECT_NE(row.error().message.find("smollm2"), std::string::npos);
}

}  // namespace
}  // namespace kvsim
