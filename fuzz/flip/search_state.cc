// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "fuzz/flip/search.h"
#include "fuzz/flip/state_reader.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

/// The text of a search's state: counters by island, and its cases in their own text.
namespace kvsim::fuzz {
namespace {

constexpr std::string_view first_words = "kvsim flip search 1";
Error other_search(std::string_view what) {
  return {ErrorKind::file,
          fmt::format("the state is of a search with another {}; name another file", what)};
}

}  // namespace

/// What the numbers of the search are taken from, as bits; equal for equal ranges.
std::array<std::int64_t, 2 * case_tensors + 1> FlipSearch::range_bits() const {
  std::array<std::int64_t, 2 * case_tensors + 1> bits{};
  std::size_t i = 0;
  for (const ValueRange& range : options_.ranges.tensors) {
    bits[i++] = static_cast<std::int64_t>(softfloat::from_double(range.largest));
    bits[i++] = static_cast<std::int64_t>(softfloat::from_double(range.root_mean_square));
  }
  bits[i] = options_.ranges.subnormals ? 1 : 0;
  return bits;
}

std::string FlipSearch::state_text() const {
  // The value's bits: a decimal would have to be read back to them.
  std::string out =
      fmt::format("{} {} {}\nrange {}\nbaseline {} {} {}\n", first_words, options_.seed,
                  islands_.size(), fmt::join(range_bits(), " "), baseline_.runs, baseline_.finds,
                  softfloat::from_double(baseline_.best_value));
  for (const Island& island : islands_) {
    out += fmt::format("island {} {} {} {}\n", island.runs, island.position, island.members.size(),
                       island.best ? 1 : 0);
    for (const ScoredCase& member : island.members) out += to_text(member.flip_case);
    if (!island.best) continue;
    out += fmt::format("best {}\n", island.best->run);
    out += to_text(island.best->scored.flip_case);
  }
  return out;
}

Result<bool> FlipSearch::read_state(std::string_view text) {
  StateReader reader(text);
  std::array<std::int64_t, 2> search{};
  Result<bool> done = reader.integers(first_words, search);
  if (!done) return done;
  if (static_cast<std::uint64_t>(search[0]) != options_.seed) return other_search("seed");
  if (search[1] != options_.islands) return other_search("number of islands");
  std::array<std::int64_t, 2 * case_tensors + 1> range{};
  done = reader.integers("range", range);
  if (!done) return done;
  if (range != range_bits()) return other_search("range of numbers");
  std::array<std::int64_t, 3> baseline{};
  done = reader.integers("baseline", baseline);
  if (!done) return done;
  const auto take = [&](ScoredCase& place) -> Result<bool> {
    Result<FlipCase> read = parse_case(reader.next_case());
    if (!read) return reader.in_case(read.error());
    if (read->shape != scorer_.shape()) return other_search("target, shape, format or kernel");
    place = scored(*std::move(read));
    return true;
  };
  std::vector<Island> islands(islands_.size());
  for (Island& island : islands) {
    std::array<std::int64_t, 4> numbers{};
    done = reader.integers("island", numbers);
    if (!done) return done;
    if (numbers[2] > static_cast<std::int64_t>(island_members)) {
      return Error{ErrorKind::file, fmt::format("an island of {} cases: at most {} are accepted",
                                                numbers[2], island_members)};
    }
    island.runs = numbers[0];
    island.position = static_cast<std::uint64_t>(numbers[1]);
    island.members.resize(static_cast<std::size_t>(numbers[2]));
    for (ScoredCase& member : island.members) {
      done = take(member);
      if (!done) return done;
    }
    if (numbers[3] == 0) continue;
    std::array<std::int64_t, 1> run{};
    done = reader.integers("best", run);
    if (!done) return done;
    island.best.emplace();
    island.best->run = run[0];
    done = take(island.best->scored);
    if (!done) return done;
  }
  if (!reader.is_empty()) return Error{ErrorKind::file, "text stands behind the last island"};
  islands_ = std::move(islands);
  baseline_ = {
      baseline[0], baseline[1],
      softfloat::to_double(softfloat::binary64, static_cast<softfloat::Bits>(baseline[2]))};
  return true;
}

}  // namespace kvsim::fuzz
