// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "fuzz/flip/islands.h"
#include "sim/parallel.h"
#include "softfloat/index.h"

namespace kvsim::fuzz {
namespace {

// Streams of random numbers under one seed.
constexpr std::uint64_t swarm_stream = std::uint64_t{1} << 32;  // + island · 2^32; position: epoch
constexpr std::uint64_t baseline_stream = std::uint64_t{1} << 62;  // + run

bool is_worse(const ScoredCase& a, const ScoredCase& b) { return a.fitness < b.fitness; }

}  // namespace

std::int64_t epoch_runs(const CaseShape& shape) {
  constexpr std::int64_t numbers_of_an_epoch = std::int64_t{1} << 20;
  std::int64_t numbers = 1;
  for (std::size_t t = 0; t < case_tensors; ++t) {
    numbers += tensor_size(shape, static_cast<CaseTensor>(t));
  }
  return std::clamp<std::int64_t>(numbers_of_an_epoch / numbers, 8, 256);
}

FlipSearch::FlipSearch(const FlipScorer& scorer, const SearchOptions& options)
    : scorer_(scorer),
      options_(options),
      epoch_(epoch_runs(scorer.shape())),
      fitter_(scorer.shape().storage, options.ranges),
      mutator_(scorer_, fitter_),
      islands_(index(options.islands)) {}

ScoredCase FlipSearch::scored(FlipCase flip_case) const {
  ScoredCase result{std::move(flip_case), {}, 0, {}};
  const Objective& wanted = objective(scorer_.shape().target);
  result.score = scorer_.score(result.flip_case);
  result.fitness = wanted.fitness(result.flip_case, result.score);
  result.claim = wanted.claim(result.flip_case, result.score);
  return result;
}

void FlipSearch::note(Island& island, const ScoredCase& candidate) const {
  if (!candidate.claim.holds()) return;
  if (island.best && candidate.claim.value <= island.best->scored.claim.value) return;
  island.best = Find{candidate, island.runs};
}

void FlipSearch::run_island(std::size_t number, std::int64_t runs) {
  Island& island = islands_[number];
  Random random({options_.seed, number, island.position});
  for (; island.runs < runs; ++island.runs) {
    if (island.members.size() < island_members) {
      island.members.push_back(scored(mutator_.seed(random)));
      note(island, island.members.back());
      continue;
    }
    Random swarm({options_.seed, swarm_stream * (number + 1),
                  static_cast<std::uint64_t>(island.runs / epoch_) * 64});
    const MutationWeights weights = swarm_weights(swarm);
    const auto count = static_cast<std::int64_t>(island.members.size());
    std::size_t parent = index(random.below(count));
    const std::size_t rival = index(random.below(count));
    if (is_worse(island.members[parent], island.members[rival])) parent = rival;
    const FlipCase& other = island.members[index(random.below(count))].flip_case;
    ScoredCase child = scored(mutator_.mutate(island.members[parent], other, weights, random));
    note(island, child);
    // Better than its parent: takes its place. Better than the worst: takes that one's. Otherwise
    // now and then a parent that is not the best gives way, as in simulated annealing.
    const auto worst = std::ranges::min_element(island.members, is_worse);
    const auto best = std::ranges::max_element(island.members, is_worse);
    const auto own = island.members.begin() + static_cast<std::ptrdiff_t>(parent);
    auto place = island.members.end();
    if (!is_worse(child, *own) || (!is_worse(*worst, child) && random.once_in(24) && own != best)) {
      place = own;
    } else if (is_worse(*worst, child)) {
      place = worst;
    }
    if (place != island.members.end()) *place = std::move(child);
  }
  island.position = random.position();
}

void FlipSearch::run_baseline(std::int64_t total) {
  const std::int64_t first = baseline_.runs;
  if (total <= first) return;
  const Objective& wanted = objective(scorer_.shape().target);
  std::vector<Claim> seen(index(total - first));
  parallel_for(total - first, options_.threads, [&](std::int64_t i) {
    Random random({options_.seed, baseline_stream + static_cast<std::uint64_t>(first + i), 0});
    const FlipCase drawn = fitter_.random_case(scorer_.shape(), random);
    seen[index(i)] = wanted.claim(drawn, scorer_.score(drawn));
  });
  for (const Claim& one : seen) {
    if (!one.holds()) continue;
    ++baseline_.finds;
    baseline_.best_value = std::max(baseline_.best_value, one.value);
  }
  baseline_.runs = total;
}

std::int64_t FlipSearch::runs() const { return total_runs(islands_); }

void FlipSearch::run(std::int64_t total, const std::function<bool(std::int64_t)>& go_on) {
  static_cast<void>(run_epochs(
      islands_, {total, epoch_, options_.threads}, is_worse,
      [&](std::size_t island, std::int64_t runs) -> Result<bool> {
        run_island(island, runs);
        return true;
      },
      [&] {
        run_baseline(runs());
        return go_on(runs());
      }));
}

const Find* FlipSearch::best() const {
  const Find* best = nullptr;
  for (const Island& island : islands_) {
    if (!island.best) continue;
    if (best == nullptr || island.best->scored.claim.value > best->scored.claim.value) {
      best = &*island.best;
    }
  }
  return best;
}

std::optional<FlipSearch::Confirmed> FlipSearch::confirmed() const {
  struct Candidate {
    const Find* find;
    std::size_t island;
  };
  std::vector<Candidate> finds;
  finds.reserve(islands_.size());
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    const std::optional<Find>& best = islands_[i].best;
    if (best) finds.push_back({&*best, i});
  }
  std::ranges::sort(finds, [](const Candidate& a, const Candidate& b) {
    const double left = a.find->scored.claim.value;
    const double right = b.find->scored.claim.value;
    return left != right ? left > right : a.island < b.island;
  });
  for (const Candidate& candidate : finds) {
    const Result<Confirmation> checked = confirm(scorer_, candidate.find->scored.flip_case);
    if (!checked) continue;
    const ScoredCase& scored = candidate.find->scored;
    const Claim claim =
        objective(scorer_.shape().target).confirmed_claim(scored.flip_case, scored.score, *checked);
    if (claim.holds()) return Confirmed{*candidate.find, *checked, claim};
  }
  return std::nullopt;
}

}  // namespace kvsim::fuzz
