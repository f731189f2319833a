// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "softfloat/evidence.h"
#include "softfloat/result.h"

namespace kvsim {

enum class ChatRole : std::uint8_t { system, user, assistant };

/// One message of a conversation.
struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::string text;  ///< UTF-8
};

/// Where a model's template puts the text of the system message.
enum class ChatSystem : std::uint8_t { own_turn, first_user, last_user };

/// Which texts lose the white space around them, as Python's strip() takes it off.
enum class ChatTrim : std::uint8_t {
  none,
  users_whole,  ///< a user's turn after the system text was put in front; and assistants
  users_text,   ///< a user's text before that; and assistants
  assistants,   ///< only assistants
  everything,   ///< the system text too
};

/// How a family of models was trained to see a conversation. Texts stand literally; special tokens
/// by their names, which a tokenizer splits off (EncodeOptions::special_tokens).
struct ChatTemplate {
  std::string_view name;    ///< "smollm2"
  std::string_view models;  ///< whose it is, for people
  std::string_view begin;   ///< before everything: the bos token, or nothing
  ChatSystem system = ChatSystem::own_turn;
  std::string_view before_system;  ///< of a turn of its own, or before the text in a user's turn
  std::string_view after_system;
  /// The system text where the conversation has none; with nullopt there is then no such turn.
  std::optional<std::string_view> default_system;
  std::string_view before_user;
  std::string_view after_user;
  std::string_view before_assistant;
  std::string_view after_assistant;
  std::string_view answer;  ///< begins the answer that the model is to give
  ChatTrim trim = ChatTrim::none;
  bool drops_thinking = false;       ///< of an earlier answer only what follows "</think>" is kept
  bool holds_bos = false;            ///< the text begins with bos: encode it with add_bos false
  std::string_view model_type = {};  ///< of config.json, where a folder has no template of its own
  /// Texts that together occur in this family's chat_template and in none before it in the table;
  /// unused ones are empty.
  std::array<std::string_view, 2> marks = {};
  std::string_view source;
  softfloat::Evidence evidence = softfloat::Evidence::documented;
};

/// Every template, in the order in which a folder's own is recognised.
[[nodiscard]] std::span<const ChatTemplate> chat_templates();

/// The row with that name. An error (usage) names the text, the accepted names and the near one.
[[nodiscard]] Result<const ChatTemplate*> find_chat_template(std::string_view name);

/// The row of a model's folder: by the chat_template of its tokenizer_config.json or
/// chat_template.jinja, without those by the model_type of its config.json. Error (file) for a
/// template that is none of the table's and for a folder that has none.
[[nodiscard]] Result<const ChatTemplate*> chat_template_of(const std::string& folder);

/// The text of a conversation up to where the model is to answer. A system message may come first;
/// then users and assistants alternate, and the last message is a user's; anything else is an error
/// (usage).
[[nodiscard]] Result<std::string> apply_chat(const ChatTemplate& row,
                                             std::span<const ChatMessage> messages);

}  // namespace kvsim
