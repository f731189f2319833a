// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "gpu/reveal/count_probe.h"

namespace kvsim::gpu {

/// Two probes that no one tree explains.
struct Contradiction {
  std::int32_t first = 0;
  std::int32_t second = 0;
  std::int64_t lost = 0;
  std::int64_t expected = 0;
};

/// Where the terms of one subtree meet one of them, the pivot: questions are asked and answered
/// until every term is in its group. Where all terms can be counted one stage is enough; otherwise
/// a sample is counted, then what lies between two samples, and a group too large for that is
/// checked piece by piece against one of its members.
class PivotRanking {
 public:
  /// Terms that meet the pivot at one node.
  struct Group {
    std::vector<std::int32_t> members;
    bool at_parent = false;  ///< at the node under which the subtree hangs
  };
  /// A random number below its argument.
  using Draw = std::function<std::uint64_t(std::uint64_t)>;

  /// `witness`: a term that is lost only where the subtree's own node is reached; −1: none.
  /// `room`: terms that can be counted besides the witness.
  PivotRanking(std::int32_t pivot, std::vector<std::int32_t> others, std::int32_t witness,
               std::int64_t room, Draw draw);

  /// Appends the questions of the next stage; none: done.
  void ask(std::vector<CountProbe>& probes);
  /// The answers to what ask() appended, in its order; what contradicts itself, if anything.
  [[nodiscard]] std::optional<Contradiction> answer(std::span<const std::int64_t> counts);

  /// Once done: the groups from the first that the pivot meets to the last.
  [[nodiscard]] std::vector<Group> groups() const;
  /// Nothing is lost wherever the masks stand: an exact sum.
  [[nodiscard]] bool exact() const { return exact_; }
  [[nodiscard]] std::int32_t pivot() const { return pivot_; }

 private:
  enum class State : std::uint8_t {
    fresh,     // to be counted: all of it, or a sample
    to_check,  // equal as far as a sample tells: is it one group?
    to_split,  // it is not: which members meet the pivot later than `representative`?
    settled,
  };
  struct Part {
    Group group;
    State state = State::fresh;
    bool whole = false;                // all terms of the subtree but the pivot
    std::int32_t representative = -1;  // a member of the group that meets the pivot first
    TermSet counted;                   // fresh
    bool complete = false;             // fresh: all members are counted
    std::vector<TermSet> pieces;       // to_check, to_split
    std::vector<std::int64_t> later;   // to_split: how many of each piece meet the pivot later
  };

  void count(Part& part);
  void cut(Part& part) const;
  std::optional<Contradiction> answer_fresh(const Part& part, std::span<const std::int64_t> counts,
                                            std::vector<Part>& parts);
  static void answer_check(Part part, std::span<const std::int64_t> counts,
                           std::vector<Part>& parts);
  std::optional<Contradiction> answer_split(const Part& part, std::span<const std::int64_t> counts,
                                            std::vector<Part>& parts) const;
  static std::size_t questions(const Part& part);

  std::int32_t pivot_;
  std::int32_t witness_;
  std::int64_t room_;
  Draw draw_;
  std::vector<Part> parts_;
  bool exact_ = false;
};

}  // namespace kvsim::gpu
