// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "model/config.h"
#include "model/json_tree.h"
#include "model/mapped_file.h"
#include "model/quote.h"

namespace kvsim {
namespace {

namespace fs = std::filesystem;

// What Python's str.isspace() says yes to, as UTF-8.
constexpr auto white_space = std::to_array<std::string_view>({
    "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",
    "\x1f",   " ",      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
    "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
    "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
});

std::string_view stripped(std::string_view text) {
  const auto leads = [&](std::string_view space) { return text.starts_with(space); };
  const auto ends = [&](std::string_view space) { return text.ends_with(space); };
  for (const auto* space = std::ranges::find_if(white_space, leads); space != white_space.end();
       space = std::ranges::find_if(white_space, leads)) {
    text.remove_prefix(space->size());
  }
  for (const auto* space = std::ranges::find_if(white_space, ends); space != white_space.end();
       space = std::ranges::find_if(white_space, ends)) {
    text.remove_suffix(space->size());
  }
  return text;
}

Error usage(std::string message) { return Error{ErrorKind::usage, std::move(message)}; }

Result<bool> check(std::span<const ChatMessage> messages) {
  const bool has_system = !messages.empty() && messages.front().role == ChatRole::system;
  const std::size_t first = has_system ? 1 : 0;
  if (messages.size() <= first) return usage("no message of a user; accepted: at least one");
  for (std::size_t i = first; i < messages.size(); ++i) {
    const ChatRole expected = (i - first) % 2 == 0 ? ChatRole::user : ChatRole::assistant;
    if (messages[i].role != expected) {
      return usage(
          fmt::format("message {} has the wrong role; accepted: one system message at most, then "
                      "user and assistant in turn",
                      i + 1));
    }
  }
  if (messages.back().role != ChatRole::user) {
    return usage("the last message is an assistant's; accepted: a user's");
  }
  return true;
}

/// What an earlier answer keeps of its text.
std::string_view without_thinking(std::string_view text) {
  constexpr std::string_view end = "</think>";
  const std::size_t at = text.rfind(end);
  if (at == std::string_view::npos) return text;
  text.remove_prefix(at + end.size());
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

/// Puts a conversation together, turn by turn.
class ChatWriter {
 public:
  ChatWriter(const ChatTemplate& row, std::span<const ChatMessage> messages)
      : row_(row), messages_(messages) {}

  std::string write() {
    text_ = row_.begin;
    const bool has_system = messages_.front().role == ChatRole::system;
    if (has_system) {
      system_ = messages_.front().text;
    } else if (row_.default_system) {
      system_ = std::string(*row_.default_system);
    }
    if (system_ && row_.trim == ChatTrim::everything) system_ = std::string(stripped(*system_));
    if (system_ && row_.system == ChatSystem::own_turn) add_system();
    const std::size_t first = has_system ? 1 : 0;
    for (std::size_t i = first; i < messages_.size(); ++i) {
      if (messages_[i].role == ChatRole::assistant) {
        add_assistant(messages_[i].text);
      } else {
        add_user(messages_[i].text, i == first, i + 1 == messages_.size());
      }
    }
    return text_.append(row_.answer);
  }

 private:
  void add_system() {
    text_.append(row_.before_system).append(system_.value_or("")).append(row_.after_system);
  }

  void add_user(std::string_view text, bool is_first, bool is_last) {
    const bool trims = row_.trim == ChatTrim::users_text || row_.trim == ChatTrim::everything;
    const bool takes_system =
        system_.has_value() && ((row_.system == ChatSystem::first_user && is_first) ||
                                (row_.system == ChatSystem::last_user && is_last));
    std::string turn;
    if (takes_system) {
      turn.append(row_.before_system).append(system_.value_or("")).append(row_.after_system);
    }
    turn.append(trims ? stripped(text) : text);
    text_.append(row_.before_user)
        .append(row_.trim == ChatTrim::users_whole ? stripped(turn) : std::string_view(turn))
        .append(row_.after_user);
  }

  void add_assistant(std::string_view text) {
    if (row_.drops_thinking) text = without_thinking(text);
    if (row_.trim != ChatTrim::none) text = stripped(text);
    text_.append(row_.before_assistant).append(text).append(row_.after_assistant);
  }

  const ChatTemplate& row_;
  std::span<const ChatMessage> messages_;
  std::optional<std::string> system_;
  std::string text_;
};

/// The Jinja text of a folder; empty where it has none.
Result<std::string> jinja_of(const std::string& folder) {
  std::error_code none;
  const fs::path config = fs::path(folder) / "tokenizer_config.json";
  const fs::path alone = fs::path(folder) / "chat_template.jinja";
  const bool is_alone = fs::exists(alone, none);
  if (!is_alone && !fs::exists(config, none)) return std::string();
  const std::string path = (is_alone ? alone : config).string();
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  constexpr std::size_t largest_file = std::size_t{1} << 24;
  if (text.size() > largest_file) {
    return Error{ErrorKind::file, fmt::format("{}: has {} bytes; accepted: at most {}",
                                              quote_path(path), text.size(), largest_file)};
  }
  if (is_alone) return std::string(text);
  JsonTreeBuilder builder;
  if (const auto problem = build_json_tree(text, builder)) {
    return Error{ErrorKind::file, fmt::format("{}: {}", quote_path(path), *problem)};
  }
  const auto found = builder.root().find("chat_template");
  if (found == builder.root().end() || !found->is_string()) return std::string();
  return found->get<std::string>();
}

std::string template_names() {
  std::string names;
  for (const ChatTemplate& row : chat_templates()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

}  // namespace

Result<const ChatTemplate*> chat_template_of(const std::string& folder) {
  const Result<std::string> jinja = jinja_of(folder);
  if (!jinja) return jinja.error();
  if (!jinja->empty()) {
    for (const ChatTemplate& row : chat_templates()) {
      const auto stands = [&](std::string_view mark) { return jinja->find(mark) != jinja->npos; };
      if (std::ranges::all_of(row.marks, stands)) return &row;
    }
    return Error{ErrorKind::file,
                 fmt::format("{}: its chat template is not known; accepted: those of {}",
                             quote_path(folder), template_names())};
  }
  const Result<ModelConfig> config = load_config((fs::path(folder) / "config.json").string());
  if (!config) return config.error();
  for (const ChatTemplate& row : chat_templates()) {
    if (row.model_type == config->model_type) return &row;
  }
  return Error{ErrorKind::file, fmt::format("{}: has no chat template; accepted: one of {} by name",
                                            quote_path(folder), template_names())};
}

Result<std::string> apply_chat(const ChatTemplate& row, std::span<const ChatMessage> messages) {
  if (const Result<bool> valid = check(messages); !valid) return valid.error();
  return ChatWriter(row, messages).write();
}

}  // namespace kvsim
