// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/model_search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "fuzz/flip/islands.h"
#include "softfloat/index.h"

namespace kvsim::fuzz {
namespace {

bool is_worse(const ScoredPrompt& a, const ScoredPrompt& b) { return a.fitness < b.fitness; }

const Prompt& any_of(const std::vector<Prompt>& pool, Random& random) {
  return pool[index(random.below(std::ssize(pool)))];
}

/// A span of a prompt, short ones more often.
Prompt any_span(const Prompt& from, Random& random) {
  const std::int64_t count = random.between(1, std::min<std::int64_t>(8, std::ssize(from)));
  const std::int64_t first = random.below(std::ssize(from) - count + 1);
  return {from.begin() + first, from.begin() + first + count};
}

}  // namespace

Prompt mutated(const Prompt& parent, const std::vector<Prompt>& pool, std::int64_t longest,
               Random& random) {
  Prompt child = parent;
  const std::int64_t count = random.between(1, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t size = std::ssize(child);
    const auto place = child.begin() + random.below(size);
    switch (random.below(6)) {
      case 0:
      case 1: {
        const Prompt& other = any_of(pool, random);
        *place = other[index(random.below(std::ssize(other)))];
        break;
      }
      case 2:
        std::swap(*place, child[index(random.below(size))]);
        break;
      case 3: {
        const std::int64_t most = std::min<std::int64_t>(size - 1, child.end() - place);
        if (most > 0)
          child.erase(place, place + random.between(1, std::min<std::int64_t>(4, most)));
        break;
      }
      case 4: {
        const Prompt span = any_span(random.once_in(2) ? parent : any_of(pool, random), random);
        child.insert(place, span.begin(), span.end());
        break;
      }
      default: {
        // The beginning of this one and the end of another.
        const Prompt& other = any_of(pool, random);
        const std::int64_t kept = random.between(1, size);
        child.resize(index(kept));
        const std::int64_t first = random.below(std::ssize(other));
        child.insert(child.end(), other.begin() + first, other.end());
      }
    }
  }
  if (std::ssize(child) > longest) child.resize(index(longest));
  return child;
}

ModelSearch::ModelSearch(const ModelScorer& scorer, std::vector<Prompt> prompts,
                         const ModelSearchOptions& options)
    : scorer_(scorer),
      prompts_(std::move(prompts)),
      options_(options),
      islands_(index(options.islands)) {
  for (const Prompt& prompt : prompts_) longest_ = std::max(longest_, 2 * std::ssize(prompt));
  const std::int64_t most = scorer.engine().max_positions() - scorer.max_new_tokens();
  if (most > 0) longest_ = std::min(longest_, most);
}

Result<bool> ModelSearch::run_island(std::size_t number, std::int64_t runs) {
  ModelIsland& island = islands_[number];
  Random random({options_.seed, number, island.position});
  for (; island.runs < runs; ++island.runs) {
    const bool is_plain = island.members.size() < model_island_members || random.once_in(4);
    Prompt child;
    if (is_plain) {
      child = any_of(prompts_, random);
    } else {
      const ScoredPrompt* parent = &island.members[index(random.below(std::ssize(island.members)))];
      const ScoredPrompt* const rival =
          &island.members[index(random.below(std::ssize(island.members)))];
      if (is_worse(*parent, *rival)) parent = rival;
      child = mutated(parent->ids, prompts_, longest_, random);
    }
    Result<PromptScore> scored = scorer_.score(child);
    if (!scored) return scored.error();
    const std::optional<ModelFlip>& flip = scored->flip;
    if (flip && (!island.best || flip->ratio() > island.best->ratio())) {
      island.best = *flip;
      island.best_run = island.runs;
    }
    if (is_plain) {
      ++island.plain_runs;
      if (flip) {
        ++island.plain_finds;
        island.plain_ratio = std::max(island.plain_ratio, flip->ratio());
      }
    }
    ScoredPrompt member{std::move(child), scored->fitness};
    if (island.members.size() < model_island_members) {
      island.members.push_back(std::move(member));
      continue;
    }
    const auto worst = std::ranges::min_element(island.members, is_worse);
    if (!is_worse(member, *worst)) *worst = std::move(member);
  }
  island.position = random.position();
  return true;
}

std::int64_t ModelSearch::runs() const { return total_runs(islands_); }

Result<bool> ModelSearch::run(std::int64_t total, const std::function<bool(std::int64_t)>& go_on) {
  return run_epochs(
      islands_, {total, model_epoch_runs, options_.threads}, is_worse,
      [&](std::size_t island, std::int64_t runs) { return run_island(island, runs); },
      [&] { return go_on(runs()); });
}

const ModelFlip* ModelSearch::best() const {
  const ModelFlip* best = nullptr;
  for (const ModelIsland& island : islands_) {
    if (!island.best) continue;
    if (best == nullptr || island.best->ratio() > best->ratio()) best = &*island.best;
  }
  return best;
}

}  // namespace kvsim::fuzz
