// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/prompt_line.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

using nlohmann::json;
using Problem = std::optional<std::string>;

constexpr std::array<std::string_view, 6> usual_fields = {"question",   "prompt",    "text",
                                                          "prompt_ids", "token_ids", "ids"};

/// Keeps what stands under the keys of the outermost object, and there only texts and arrays of
/// numbers; everything else is passed over, so that a line costs no more memory than its length.
class PromptLineReader : public nlohmann::json_sax<json> {
 public:
  PromptLineReader(std::string_view field, Prompt& prompt) : field_(field), prompt_(prompt) {}

  bool null() override { return other("null"); }
  bool boolean(bool /*value*/) override { return other("true or false"); }
  bool number_integer(number_integer_t value) override {
    return in_ids_ ? refuse(fmt::format("holds {}; accepted: ids of at least 0", value))
                   : other("a number");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_ids_) return other("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max()) ||
        prompt_.ids.size() >= PromptLimits::ids) {
      return refuse(fmt::format("holds {} as id {}; accepted: at most {} ids from 0 to {}", value,
                                prompt_.ids.size(), PromptLimits::ids,
                                std::numeric_limits<TokenId>::max()));
    }
    prompt_.ids.push_back(static_cast<TokenId>(value));
    return true;
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return in_ids_ ? refuse(fmt::format("holds {}; accepted: whole numbers", quote(text)))
                   : other("a number");
  }
  bool string(string_t& value) override {
    if (in_ids_) return refuse(fmt::format("holds {}; accepted: whole numbers", quote(value)));
    if (depth_ == 1 && key_ == "answer") prompt_.answer = value;
    if (!is_wanted()) return true;
    prompt_.ids.clear();
    prompt_.text = std::move(value);
    return found();
  }
  bool binary(binary_t& /*value*/) override { return other("binary data"); }
  bool start_object(std::size_t /*size*/) override {
    if (in_ids_ || is_wanted()) return other("an object");
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    if (in_ids_) return other("an array in an array");
    if (is_wanted()) {
      in_ids_ = true;
      prompt_.ids.clear();
      prompt_.text.clear();
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (!in_ids_) return true;
    in_ids_ = false;
    return found();
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& /*failure*/) override {
    problem_ = fmt::format("byte {} is not JSON; accepted: one JSON object", position);
    return false;
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::size_t found_rank() const { return rank_; }

 private:
  /// The place of the key among the fields looked for; usual_fields.size() if it is none of them.
  [[nodiscard]] std::size_t rank_of_key() const {
    if (!field_.empty()) return key_ == field_ ? 0 : usual_fields.size();
    std::size_t rank = 0;
    while (rank < usual_fields.size() && usual_fields[rank] != key_) ++rank;
    return rank;
  }
  [[nodiscard]] bool is_wanted() const { return depth_ == 1 && rank_of_key() < rank_; }
  bool found() {
    rank_ = rank_of_key();
    if (!prompt_.text.empty() || !prompt_.ids.empty()) return true;
    return refuse("is empty; accepted: at least one character or id");
  }
  bool refuse(std::string_view problem) {
    problem_ = fmt::format("field {} {}", quote(key_), problem);
    return false;
  }
  bool other(std::string_view what) {
    if (!in_ids_ && !is_wanted()) return true;
    return refuse(fmt::format("{} {}; accepted: a text, or an array of token ids",
                              in_ids_ ? "holds" : "is", what));
  }

  std::string_view field_;
  Prompt& prompt_;
  std::string key_;
  std::string problem_;
  std::size_t rank_ = usual_fields.size();
  int depth_ = 0;
  bool in_ids_ = false;
};

}  // namespace

Problem read_prompt_line(std::string_view line, std::string_view field, Prompt& prompt) {
  if (const std::size_t zero = line.find('\0'); zero != std::string_view::npos) {
    return fmt::format("byte {} is zero; accepted: one JSON object", zero + 1);
  }
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || line[first] != '{') {
    return fmt::format("begins with {}; accepted: one JSON object",
                       quote(line.substr(first == std::string_view::npos ? 0 : first, 1)));
  }
  PromptLineReader reader(field, prompt);
  if (!json::sax_parse(line.begin(), line.end(), &reader)) return reader.problem();
  if (reader.found_rank() < usual_fields.size()) return std::nullopt;
  if (!field.empty()) return fmt::format("has no field {}; accepted: lines with it", quote(field));
  return "has no prompt; accepted: a field question, prompt, text, prompt_ids, token_ids or ids";
}

}  // namespace kvsim
