// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The search of `kvsim fuzz flip` with libFuzzer as its engine: inputs are cases, the mutations
// those of the built-in search (fuzz/flip/mutate.h), and the fitness goes back through libFuzzer's
// extra counters: a case that climbs to a new level of its shape's fitness is kept. With
// --finds=FOLDER a case that is better than all before it, the corpus included, and which MPFR
// confirms is written there. Shapes and targets are those of the cases in the corpus.
//
// What it asserts: a mutated case can be printed and read back; its fitness is a number, it claims
// no more than the bounds on rounding allow, and what is better than all before it MPFR confirms.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/flip/case.h"
#include "fuzz/flip/confirm.h"
#include "fuzz/flip/mutate.h"
#include "fuzz/flip/objective.h"
#include "fuzz/flip/random.h"
#include "fuzz/flip/ranges.h"
#include "fuzz/flip/score.h"
#include "fuzz/targets/input.h"

namespace {

using kvsim::targets::require;
namespace flip = kvsim::fuzz;

// A counter for each level of the score, for each of the first shapes; libFuzzer sets them to 0
// before an input and looks at them after it.
constexpr std::size_t most_shapes = 16;
constexpr std::size_t levels = 2048;
__attribute__((
    section("__libfuzzer_extra_counters"))) std::array<std::uint8_t, most_shapes * levels>
    reached;

/// Where flips are written; empty: nowhere.
std::string finds_folder;
/// The mutator was called: what comes now is not the corpus any more.
bool is_searching = false;

/// What is kept for a shape. The scorer is where it is, because the mutator refers to it.
struct ShapeSearch {
  ShapeSearch(flip::FlipScorer made, std::size_t first)
      : scorer(std::move(made)),
        fitter(scorer.shape().storage),
        mutator(scorer, fitter),
        first_level(first) {}

  flip::FlipScorer scorer;
  flip::ValueFitter fitter;
  flip::Mutator mutator;
  std::size_t first_level = 0;  ///< where its counters begin
  double best = 0;              ///< claim of the cases seen
};

/// The search of a shape; null where it cannot be scored or there are too many shapes.
ShapeSearch* search_of(const flip::CaseShape& shape) {
  static std::vector<std::unique_ptr<ShapeSearch>> searches;
  for (const auto& each : searches) {
    if (each->scorer.shape() == shape) return each.get();
  }
  if (searches.size() == most_shapes) return nullptr;
  auto scorer = flip::FlipScorer::make(shape);
  if (!scorer) {
    kvsim::targets::check_error(scorer.error());
    return nullptr;
  }
  searches.push_back(std::make_unique<ShapeSearch>(std::move(*scorer), searches.size() * levels));
  return searches.back().get();
}

/// Which of the levels a fitness has reached: close together near 0, in whatever unit.
std::size_t level_of(double fitness) {
  const double place = fitness / (0.25 + std::abs(fitness));  // from -1 to 1
  return static_cast<std::size_t>((place + 1) / 2 * (levels - 1));
}

void write_find(const flip::FlipScorer& scorer, const flip::FlipCase& found,
                const flip::FlipScore& score) {
  const auto confirmed = flip::confirm(scorer, found);
  if (!confirmed) return kvsim::targets::check_error(confirmed.error());
  const flip::Objective& goal = flip::objective(found.shape.target);
  const flip::Claim claim = goal.confirmed_claim(found, score, *confirmed);
  if (!claim.holds()) return;
  const std::string path = finds_folder + "/" + flip::case_file_name(found);
  std::ofstream(path, std::ios::binary) << flip::to_text(found);
  std::printf("found: %g %s: %s\n", claim.value, std::string(goal.unit).c_str(), path.c_str());
}

/// The case with its shape's search; nothing where the text is none or cannot be scored.
struct ReadCase {
  flip::FlipCase flip_case;
  ShapeSearch* search = nullptr;
};
/// MPFR says the same, but for the error of the search's own reference.
void check_claim(const flip::FlipScorer& scorer, const ReadCase& read, const flip::FlipScore& score,
                 const flip::Claim& claim) {
  const auto confirmed = flip::confirm(scorer, read.flip_case);
  if (!confirmed) return;  // 256 bits do not tell
  const flip::Objective& goal = flip::objective(read.flip_case.shape.target);
  const flip::Claim sure = goal.confirmed_claim(read.flip_case, score, *confirmed);
  if (sure.value == claim.value) return;
  const double unit = std::min(score.paths[0].bound, score.paths[1].bound);
  const double allowed = 1e-6 * claim.value + 4 * score.reference_error / unit;
  require(claim.value <= allowed || std::abs(sure.value - claim.value) <= allowed);
}

std::optional<ReadCase> read_case(const std::uint8_t* data, std::size_t size) {
  auto parsed = flip::parse_case({reinterpret_cast<const char*>(data), size});
  if (!parsed) return std::nullopt;
  ShapeSearch* const search = search_of(parsed->shape);
  if (search == nullptr) return std::nullopt;
  return ReadCase{std::move(*parsed), search};
}

/// Writes the case over the input; 0 where it does not fit.
std::size_t put(const flip::FlipCase& flip_case, std::uint8_t* data, std::size_t most) {
  const std::string text = flip::to_text(flip_case);
  if (text.size() > most) return 0;
  std::ranges::copy(text, data);
  return text.size();
}

/// The case to start from where the corpus has none.
const flip::FlipCase& first_case() {
  static const flip::FlipCase made = [] {
    flip::CaseShape shape;
    shape.terms = 32;
    shape.accumulator = kvsim::softfloat::binary16;
    shape.orders = {kvsim::parse_order("sequential").value(),
                    kvsim::parse_order("pairwise").value()};
    flip::Random random({.seed = 1});
    return flip::ValueFitter(shape.storage).random_case(shape, random);
  }();
  return made;
}

/// A mutation of one case, with another one to cross it with.
std::size_t mutate(const ReadCase& parent, const flip::FlipCase& other, std::uint8_t* data,
                   std::size_t most, unsigned seed) {
  constexpr std::uint64_t stream = 0x666c6970;
  flip::Random random({.seed = seed, .stream = stream});
  const flip::Objective& goal = flip::objective(parent.flip_case.shape.target);
  flip::ScoredCase scored{parent.flip_case, parent.search->scorer.score(parent.flip_case), 0, {}};
  scored.fitness = goal.fitness(scored.flip_case, scored.score);
  scored.claim = goal.claim(scored.flip_case, scored.score);
  const flip::MutationWeights weights = flip::swarm_weights(random);
  const flip::FlipCase child = parent.search->mutator.mutate(scored, other, weights, random);
  return put(child, data, most);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view option = "--finds=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(option)) finds_folder = argument.substr(option.size());
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  is_searching = true;
  const auto parent = read_case(data, size);
  if (!parent) return put(first_case(), data, most);
  return mutate(*parent, parent->flip_case, data, most, seed);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second,
                                                 std::size_t second_size, std::uint8_t* out,
                                                 std::size_t most, unsigned seed) {
  const auto parent = read_case(first, first_size);
  if (!parent) return put(first_case(), out, most);
  const auto other = read_case(second, second_size);
  const bool fits = other && other->search == parent->search;
  return mutate(*parent, fits ? other->flip_case : parent->flip_case, out, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = read_case(data, size);
  if (!read) return 0;
  const auto again = flip::parse_case(flip::to_text(read->flip_case));
  require(again.has_value() && *again == read->flip_case);
  for (std::size_t t = 0; t < flip::case_tensors; ++t) {  // zeros of both signs are equal
    require(std::ranges::equal(
        again->tensors[t], read->flip_case.tensors[t], {}, [](float x) { return std::signbit(x); },
        [](float x) { return std::signbit(x); }));
  }
  ShapeSearch& search = *read->search;
  const flip::FlipScore score = search.scorer.score(read->flip_case);
  const flip::Objective& goal = flip::objective(read->flip_case.shape.target);
  const double fitness = goal.fitness(read->flip_case, score);
  require(!std::isnan(fitness));
  reached[search.first_level + level_of(fitness)] = 1;
  const flip::Claim claim = goal.claim(read->flip_case, score);
  if (!claim.holds()) return 0;
  require(claim.value <= goal.largest_value);
  if (claim.value <= search.best) return 0;
  search.best = claim.value;
  check_claim(search.scorer, *read, score, claim);
  if (is_searching && !finds_folder.empty()) write_find(search.scorer, read->flip_case, score);
  return 0;
}
