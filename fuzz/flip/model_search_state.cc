// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "fuzz/flip/case.h"
#include "fuzz/flip/model_search.h"
#include "fuzz/flip/state_reader.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/sha256.h"

/// The text of a model search's state.
namespace kvsim::fuzz {
namespace {

/// 16 digits for all prompts in their order.
std::string digest_of_prompts(const std::vector<Prompt>& prompts) {
  std::string text;
  for (const Prompt& prompt : prompts) text += fmt::format("{}\n", fmt::join(prompt, " "));
  return sha256(std::as_bytes(std::span(text))).substr(0, 16);
}

std::int64_t bits_of(double x) { return static_cast<std::int64_t>(softfloat::from_double(x)); }
double of_bits(std::int64_t bits) {
  return softfloat::to_double(softfloat::binary64, static_cast<softfloat::Bits>(bits));
}

}  // namespace

std::string ModelSearch::head() const {
  return fmt::format(
      "kvsim model search 1\nsha256 {}\non {}\noff {}\nsettings seed {} islands {} tokens {} "
      "prompts {}\n",
      scorer_.engine().model_sha256(), to_text(scorer_.arms()[path_on]),
      to_text(scorer_.arms()[path_off]), options_.seed, islands_.size(), scorer_.max_new_tokens(),
      digest_of_prompts(prompts_));
}

std::string ModelSearch::state_text() const {
  std::string out = head();
  for (const ModelIsland& island : islands_) {
    out += fmt::format("island {} {} {} {} {} {} {}\n", island.runs, island.position,
                       island.members.size(), island.best ? 1 : 0, island.plain_runs,
                       island.plain_finds, bits_of(island.plain_ratio));
    for (const ScoredPrompt& member : island.members) {
      // The fitness may be negative: its sign stands alone.
      out += fmt::format("member {} {} {}\nids {}\n", member.fitness < 0 ? 1 : 0,
                         bits_of(std::abs(member.fitness)), member.ids.size(),
                         fmt::join(member.ids, " "));
    }
    if (!island.best) continue;
    out += fmt::format("best {}\n", island.best_run);
    out += to_text(island.best->flip_case);
  }
  return out;
}

Result<bool> ModelSearch::read_state(std::string_view text) {
  const std::string own = head();
  if (!text.starts_with(own)) {
    return Error{ErrorKind::file,
                 "the state is of a search with another model, arm, seed, number of islands or "
                 "tokens, or of other prompts; name another file"};
  }
  StateReader reader(text, own.size());
  std::vector<ModelIsland> islands(islands_.size());
  for (ModelIsland& island : islands) {
    std::array<std::int64_t, 7> numbers{};
    Result<bool> done = reader.integers("island", numbers);
    if (!done) return done;
    if (numbers[2] > static_cast<std::int64_t>(model_island_members)) {
      return Error{ErrorKind::file, fmt::format("an island of {} prompts: at most {} are accepted",
                                                numbers[2], model_island_members)};
    }
    island.runs = numbers[0];
    island.position = static_cast<std::uint64_t>(numbers[1]);
    island.plain_runs = numbers[4];
    island.plain_finds = numbers[5];
    island.plain_ratio = of_bits(numbers[6]);
    island.members.resize(static_cast<std::size_t>(numbers[2]));
    for (ScoredPrompt& member : island.members) {
      std::array<std::int64_t, 3> fitness{};
      done = reader.integers("member", fitness);
      if (!done) return done;
      member.fitness = (fitness[0] != 0 ? -1 : 1) * of_bits(fitness[1]);
      std::vector<std::int64_t> ids(
          static_cast<std::size_t>(std::clamp<std::int64_t>(fitness[2], 1, longest_)));
      done = reader.integers("ids", ids);
      if (!done) return done;
      member.ids.assign(ids.begin(), ids.end());
    }
    if (numbers[3] == 0) continue;
    std::array<std::int64_t, 1> run{};
    done = reader.integers("best", run);
    if (!done) return done;
    island.best_run = run[0];
    const auto parsed = parse_model_case(reader.next_case());
    if (!parsed) return reader.in_case(parsed.error());
    Result<ModelFlip> flip = scorer_.judge(*parsed);
    if (!flip) return flip.error();
    island.best = std::move(*flip);
  }
  if (!reader.is_empty()) return Error{ErrorKind::file, "text stands behind the last island"};
  islands_ = std::move(islands);
  return true;
}

}  // namespace kvsim::fuzz
