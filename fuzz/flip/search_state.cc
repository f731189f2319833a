// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include "fuzz/flip/search.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"
#include "softfloat/text.h"

/// The text of a search's state: counters by island, and its cases in their own text.
namespace kvsim::fuzz {
namespace {

constexpr std::string_view first_words = "kvsim flip search 1";
constexpr std::string_view end_of_case = "\nend\n";

/// Cuts lines and cases off the front of the text.
class StateReader {
 public:
  explicit StateReader(std::string_view text) : rest_(text) {}

  /// The integers of a line `KEY N N …`, as many as `values` has.
  template <std::size_t count>
  Result<bool> integers(std::string_view key, std::array<std::int64_t, count>& values) {
    ++line_;
    std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
    bool fits = line.starts_with(key);
    if (fits) line.remove_prefix(key.size());
    for (std::int64_t& value : values) {
      fits = fits && line.starts_with(' ');
      if (!fits) break;
      line.remove_prefix(1);
      const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
      fits = failure == std::errc() && value >= 0;
      if (fits) line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    }
    if (fits && line.empty()) return true;
    return Error{ErrorKind::file,
                 fmt::format("line {}: '{}' and {} numbers are accepted", line_, key, count)};
  }

  Result<FlipCase> next_case() {
    const std::size_t end = rest_.find(end_of_case);
    const std::string_view text =
        rest_.substr(0, end == std::string_view::npos ? rest_.size() : end + end_of_case.size());
    rest_.remove_prefix(text.size());
    const std::int64_t first = line_;
    line_ += std::count(text.begin(), text.end(), '\n');
    Result<FlipCase> parsed = parse_case(text);
    if (parsed) return parsed;
    return Error{ErrorKind::file,
                 fmt::format("the case behind line {}: {}", first, parsed.error().message)};
  }

  [[nodiscard]] bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  std::int64_t line_ = 0;
};

Error other_search(std::string_view what) {
  return {ErrorKind::file,
          fmt::format("the state is of a search with another {}; name another file", what)};
}

}  // namespace

std::string FlipSearch::state_text() const {
  // The value's bits: a decimal would have to be read back to them.
  std::string out =
      fmt::format("{} {} {}\nbaseline {} {} {}\n", first_words, options_.seed, islands_.size(),
                  baseline_.runs, baseline_.finds, softfloat::from_double(baseline_.best_value));
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
  std::array<std::int64_t, 3> baseline{};
  done = reader.integers("baseline", baseline);
  if (!done) return done;
  const auto take = [&](ScoredCase& place) -> Result<bool> {
    Result<FlipCase> read = reader.next_case();
    if (!read) return read.error();
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
