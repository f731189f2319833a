// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/pivot_ranking.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

namespace kvsim::gpu {
namespace {

using Term = std::int32_t;

bool contains(const std::vector<Term>& sorted, Term term) {
  return std::binary_search(sorted.begin(), sorted.end(), term);
}

}  // namespace

PivotRanking::PivotRanking(Term pivot, std::vector<Term> others, Term witness, std::int64_t room,
                           Draw draw)
    : pivot_(pivot), witness_(witness), room_(room), draw_(std::move(draw)) {
  Part all;
  all.group.members = std::move(others);
  all.whole = true;
  parts_.push_back(std::move(all));
}

/// What a fresh part counts: its members or a sample of them, and the witness in the first stage.
void PivotRanking::count(Part& part) {
  auto counted = std::make_shared<std::vector<Term>>(part.group.members);
  const auto room = static_cast<std::size_t>(room_);
  part.complete = counted->size() <= room;
  if (!part.complete) {
    for (std::size_t i = 0; i < room; ++i) {
      std::swap((*counted)[i], (*counted)[i + draw_(counted->size() - i)]);
    }
    counted->resize(room);
  }
  if (part.whole && witness_ >= 0) counted->push_back(witness_);
  std::sort(counted->begin(), counted->end());
  part.counted = std::move(counted);
}

void PivotRanking::cut(Part& part) const {
  const std::vector<Term>& members = part.group.members;
  const auto room = static_cast<std::size_t>(room_);
  for (std::size_t begin = 0; begin < members.size(); begin += room) {
    const std::size_t end = std::min(members.size(), begin + room);
    part.pieces.push_back(
        std::make_shared<std::vector<Term>>(members.begin() + static_cast<std::ptrdiff_t>(begin),
                                            members.begin() + static_cast<std::ptrdiff_t>(end)));
  }
}

std::size_t PivotRanking::questions(const Part& part) {
  switch (part.state) {
    case State::fresh:
      return part.group.members.size();
    case State::to_check:
      return part.pieces.size();
    case State::to_split: {
      std::size_t size = 0;
      for (std::size_t i = 0; i < part.pieces.size(); ++i) {
        if (part.later[i] > 0) size += part.pieces[i]->size();
      }
      return size;
    }
    case State::settled:
      break;
  }
  return 0;
}

void PivotRanking::ask(std::vector<CountProbe>& probes) {
  for (Part& part : parts_) {
    switch (part.state) {
      case State::fresh:
        count(part);
        for (const Term other : part.group.members) {
          probes.push_back({pivot_, other, part.counted});
        }
        break;
      case State::to_check:
        cut(part);
        for (const TermSet& piece : part.pieces) {
          probes.push_back({pivot_, part.representative, piece});
        }
        break;
      case State::to_split:
        for (std::size_t i = 0; i < part.pieces.size(); ++i) {
          if (part.later[i] == 0) continue;
          for (const Term other : *part.pieces[i]) {
            probes.push_back({pivot_, other, part.pieces[i]});
          }
        }
        break;
      case State::settled:
        break;
    }
  }
}

std::optional<Contradiction> PivotRanking::answer(std::span<const std::int64_t> counts) {
  std::vector<Part> parts = std::exchange(parts_, {});
  std::optional<Contradiction> wrong;
  for (Part& part : parts) {
    const std::size_t size = questions(part);
    const std::span<const std::int64_t> own = counts.first(size);
    counts = counts.subspan(size);
    switch (part.state) {
      case State::fresh:
        wrong = answer_fresh(part, own, parts_);
        break;
      case State::to_check:
        answer_check(std::move(part), own, parts_);
        break;
      case State::to_split:
        wrong = answer_split(part, own, parts_);
        break;
      case State::settled:
        parts_.push_back(std::move(part));
        break;
    }
    if (wrong) return wrong;
  }
  return std::nullopt;
}

std::optional<Contradiction> PivotRanking::answer_fresh(const Part& part,
                                                        std::span<const std::int64_t> counts,
                                                        std::vector<Part>& parts) {
  const std::vector<Term>& counted = *part.counted;
  const auto counted_size = static_cast<std::int64_t>(counted.size());
  std::map<std::int64_t, std::vector<Term>, std::greater<>> groups;  // the most survivors first
  bool anything_lost = false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Term other = part.group.members[i];
    groups[counts[i]].push_back(other);
    anything_lost |= counts[i] + (contains(counted, other) ? 1 : 0) != counted_size;
  }
  const bool has_witness = part.whole && witness_ >= 0;
  if (part.whole && !anything_lost && part.group.members.size() > 1) {
    exact_ = true;
    Part settled = part;
    settled.state = State::settled;
    parts.push_back(std::move(settled));
    return std::nullopt;
  }
  std::int64_t before = 0;
  for (auto& [survivors, members] : groups) {
    const bool at_parent = has_witness && survivors == 0;
    before += static_cast<std::int64_t>(members.size());
    if (part.complete) {
      // In a tree every group loses the groups before it and itself; −M itself is not counted.
      const std::int64_t lost = counted_size - survivors - 1;
      const std::int64_t expected = before - 1 + (at_parent ? 1 : 0);
      if (lost != expected) return Contradiction{pivot_, members.front(), lost, expected};
    }
    Part next;
    const auto size = static_cast<std::int64_t>(members.size());
    if (part.complete || at_parent || size == 1) {
      next.state = State::settled;
    } else if (size > room_) {
      // A counted member meets the pivot no later than the others of its group.
      const auto found = std::find_if(members.begin(), members.end(),
                                      [&](Term term) { return contains(counted, term); });
      if (found != members.end()) {
        next.representative = *found;
        next.state = State::to_check;
      }
    }
    next.group = {std::move(members), at_parent};
    parts.push_back(std::move(next));
  }
  return std::nullopt;
}

void PivotRanking::answer_check(Part part, std::span<const std::int64_t> counts,
                                std::vector<Part>& parts) {
  part.later.assign(counts.begin(), counts.end());
  const bool one = std::all_of(counts.begin(), counts.end(), [](auto count) { return count == 0; });
  part.state = one ? State::settled : State::to_split;
  parts.push_back(std::move(part));
}

std::optional<Contradiction> PivotRanking::answer_split(const Part& part,
                                                        std::span<const std::int64_t> counts,
                                                        std::vector<Part>& parts) const {
  Part first;
  first.state = State::settled;
  Part rest;
  std::size_t next = 0;
  for (std::size_t i = 0; i < part.pieces.size(); ++i) {
    const std::vector<Term>& piece = *part.pieces[i];
    std::int64_t later = 0;
    for (const Term other : piece) {
      const bool meets_later = part.later[i] > 0 && counts[next++] < part.later[i];
      later += meets_later ? 1 : 0;
      (meets_later ? rest : first).group.members.push_back(other);
    }
    if (later != part.later[i]) {
      return Contradiction{pivot_, part.representative, later, part.later[i]};
    }
  }
  parts.push_back(std::move(first));
  if (rest.group.members.size() == 1) rest.state = State::settled;
  parts.push_back(std::move(rest));
  return std::nullopt;
}

std::vector<PivotRanking::Group> PivotRanking::groups() const {
  std::vector<Group> groups;
  groups.reserve(parts_.size());
  for (const Part& part : parts_) groups.push_back(part.group);
  return groups;
}

}  // namespace kvsim::gpu
