// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/model_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "fuzz/flip/case.h"
#include "fuzz/flip/case_lines.h"
#include "softfloat/sha256.h"

namespace kvsim::fuzz {
namespace {

constexpr std::size_t ids_of_a_line = 24;
constexpr std::size_t longest_name = 4096;
constexpr std::size_t sha256_digits = 64;

/// A name as one line can hold it: what is not printable ASCII or UTF-8 becomes a question mark.
std::string one_line(std::string_view name) {
  std::string result(name.substr(0, longest_name));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\x7f') c = '?';
  }
  return result;
}

bool is_sha256(std::string_view text) {
  return text.size() == sha256_digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

class ModelParser {
 public:
  explicit ModelParser(std::string_view text) : lines_(text) {}

  Result<ModelCase> run() {
    const auto first = lines_.next();
    if (!first) return lines_.ends(first_case_line);
    if (*first != first_case_line) return lines_.wrong(*first, first_case_line);
    const auto kind = lines_.value_of("kind");
    if (!kind) return kind.error();
    if (*kind != "model") return lines_.wrong(*kind, "model");
    ModelCase result;
    Result<bool> done = read_model(result);
    if (done) done = read_arm("on", result.arms[path_on]);
    if (done) done = read_arm("off", result.arms[path_off]);
    if (done) done = lines_.read_floor(result.floor);
    if (done) done = read_ids(result);
    if (!done) return done.error();
    return result;
  }

 private:
  Result<bool> read_model(ModelCase& result) {
    const auto name = lines_.value_of("model");
    if (!name) return name.error();
    result.model = one_line(*name);
    const auto digest = lines_.value_of("sha256");
    if (!digest) return digest.error();
    if (!is_sha256(*digest)) return lines_.wrong(*digest, "64 hexadecimal digits");
    result.model_sha256 = *digest;
    return true;
  }

  Result<bool> read_arm(std::string_view key, Arm& place) {
    const auto text = lines_.value_of(key);
    if (!text) return text.error();
    Result<Arm> arm = parse_arm(*text);
    if (!arm) return lines_.here(arm.error());
    place = std::move(*arm);
    place.label = key;
    return true;
  }

  Result<std::int64_t> integer(std::string_view word, std::int64_t most) const {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size() || value < 0 || value > most) {
      return lines_.wrong(word, fmt::format("a number from 0 to {}", most));
    }
    return value;
  }

  Result<bool> read_ids(ModelCase& result) {
    const auto count = lines_.value_of("prompt-tokens");
    if (!count) return count.error();
    const auto tokens = integer(*count, most_model_tokens);
    if (!tokens) return tokens.error();
    result.prompt_tokens = *tokens;
    const auto name = lines_.next();
    if (!name) return lines_.ends("ids");
    if (*name != "ids") return lines_.wrong(*name, "ids");
    while (true) {
      const auto line = lines_.next();
      if (!line) return lines_.ends("token ids, or end");
      if (*line == "end") break;
      std::string_view rest = *line;
      for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
        const auto id = integer(word, std::numeric_limits<TokenId>::max());
        if (!id) return id.error();
        if (std::ssize(result.ids) >= most_model_tokens) {
          return lines_.wrong(word, fmt::format("at most {} token ids", most_model_tokens));
        }
        result.ids.push_back(static_cast<TokenId>(*id));
      }
    }
    if (result.prompt_tokens < 1 || result.prompt_tokens > std::ssize(result.ids)) {
      return lines_.wrong(*count, "a number of prompt-tokens from 1 to that of the ids");
    }
    const auto behind = lines_.next();
    if (behind) return lines_.wrong(*behind, "nothing");
    return true;
  }

  CaseLines lines_;
};

}  // namespace

bool is_model_case(std::string_view text) {
  CaseLines lines(text);
  return lines.next() == first_case_line && lines.next_is("kind model");
}

std::string to_text(const ModelCase& model_case) {
  std::string out =
      fmt::format("{}\nkind model\nmodel {}\nsha256 {}\non {}\noff {}\n{}prompt-tokens {}\nids",
                  first_case_line, one_line(model_case.model), model_case.model_sha256,
                  to_text(model_case.arms[path_on]), to_text(model_case.arms[path_off]),
                  floor_line(model_case.floor), model_case.prompt_tokens);
  for (std::size_t i = 0; i < model_case.ids.size(); ++i) {
    out += i % ids_of_a_line == 0 ? '\n' : ' ';
    out += fmt::to_string(model_case.ids[i]);
  }
  return out + "\nend\n";
}

std::string case_file_name(const ModelCase& model_case) {
  const std::string text = to_text(model_case);
  return fmt::format("model-{}.case", sha256(std::as_bytes(std::span(text))).substr(0, 16));
}

Result<ModelCase> parse_model_case(std::string_view text) {
  if (text.size() > most_case_text) {
    return Error{ErrorKind::file,
                 fmt::format("{} bytes: a case has at most {}", text.size(), most_case_text)};
  }
  return ModelParser(text).run();
}

}  // namespace kvsim::fuzz
