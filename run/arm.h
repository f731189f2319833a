// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

/// The arms of a run: how each builds its cache, and what else it sets.
namespace kvsim {

/// How the K/V cache over one list of tokens comes about.
enum class CacheConstructor : std::uint8_t {
  live,            ///< the prompt at once, then token by token; also written `on`
  token_wise,      ///< the same, built anew for every token from an empty cache
  all_token_wise,  ///< token by token from the first token of the prompt
  one_shot,        ///< prompt and generated tokens at once, then token by token
  chunked,         ///< the prompt in chunks of c rows, then token by token
  aligned_chunk,   ///< chunks that end at multiples of c; the last chunk is computed anew
  prefix_hit,      ///< whole blocks of the first n tokens come from an earlier prompt
  off,             ///< no cache: everything is computed for every token
};

/// KEY=VALUE of an arm.
struct ArmSetting {
  std::string key;
  std::string value;

  friend bool operator==(const ArmSetting&, const ArmSetting&) = default;
};

/// One arm of a run.
struct Arm {
  CacheConstructor constructor = CacheConstructor::live;
  std::int64_t rows = 0;             ///< c of chunked and aligned_chunk, n of prefix_hit
  std::int64_t block = 0;            ///< b of prefix_hit
  std::vector<ArmSetting> settings;  ///< sorted by key
  std::string label;                 ///< never empty after parse_arm()

  friend bool operator==(const Arm&, const Arm&) = default;
};

/// Reads `CONSTRUCTOR[:KEY=VALUE,…][@LABEL]`. Constructors: live (or on), token-wise,
/// all-token-wise, one-shot, chunked(c), aligned-chunk(c), prefix-hit(n,b), off. Commas and @
/// inside parentheses do not split. Keys are letters, digits, '.', '-' and '_'; values are
/// printable ASCII without blanks, with balanced parentheses; labels are up to 64 letters, digits,
/// '.', '-',
/// '_' and '+'. Without @LABEL the label is the text without it, in canonical form. Errors (usage)
/// name the text, the place and what is accepted.
[[nodiscard]] Result<Arm> parse_arm(std::string_view text);

/// The canonical text without the label: `live` for `on`, settings sorted by key.
[[nodiscard]] std::string to_text(const Arm& arm);

/// The canonical text with @LABEL where the label is not the canonical text itself. parse_arm() of
/// it gives the arm again.
[[nodiscard]] std::string to_text_with_label(const Arm& arm);

/// One pass through the model: rows first_row … first_row + rows − 1 of the token list, with the
/// keys and values of rows 0 … cached_rows − 1 from the cache. Rows that the cache held from
/// first_row on are forgotten.
struct PlanStep {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t cached_rows = 0;

  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// The passes, in order, from an empty cache, over n prompt tokens and m generated ones that are
/// all known; the last pass gives the logits of the next token.
///
///   live, token-wise   (0,n,0) (n,1,n) (n+1,1,n+1) … (n+m−1,1,n+m−1)
///   all-token-wise     (0,1,0) (1,1,1) … (n+m−1,1,n+m−1)
///   one-shot           (0,n+m,0)
///   chunked(c)         (0,c,0) (c,c,c) … up to n, the last one shorter; then one row at a time
///   aligned-chunk(c)   (0,c,0) (c,c,c) … up to n+m, the last one shorter
///   prefix-hit(k,b)    (0,k,0) the earlier prompt, of which whole blocks are kept:
///                      h = b ⌊min(k, n−1) ÷ b⌋ rows; (h,n−h,h); then one row at a time. At least
///                      the prompt's last token is computed. Where h is 0: as live
///   off                (0,n,0) (0,n+1,0) … (0,n+m,0)
///
/// Errors (usage): n below 1, m below 0, n + m above 2^31, a prefix longer than the prompt, and
/// plans of more than 2^24 passes.
[[nodiscard]] Result<std::vector<PlanStep>> cache_plan(const Arm& arm, std::int64_t prompt_tokens,
                                                       std::int64_t generated_tokens);

/// The passes that the arm makes for the token after those m generated ones, when it has made
/// those of cache_plan(n, m):
///   token-wise      the whole of cache_plan(n, m + 1), from an empty cache
///   aligned-chunk   (s,n+m+1−s,s), s the start of the chunk that holds row n+m
///   off             (0,n+m+1,0)
///   all others      (n+m,1,n+m)
/// Errors as of cache_plan().
[[nodiscard]] Result<std::vector<PlanStep>> next_passes(const Arm& arm, std::int64_t prompt_tokens,
                                                        std::int64_t generated_tokens);

}  // namespace kvsim
