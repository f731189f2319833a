// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/fuzz/follow_up.h"

#include <utility>

#include "cli/fuzz/search_run.h"
#include "cli/progress.h"

namespace kvsim {

Result<FlipFollowUp> follow_up(const SearchLimits& limits, const ParsedOptions& options,
                               const fuzz::FlipCase& found) {
  FlipFollowUp after;
  const auto store = [&](const std::string& name, const fuzz::FlipCase& flip_case) {
    auto written = write_case(limits, name, fuzz::to_text(flip_case));
    if (written && !written->empty()) after.files.push_back(*written);
    return written;
  };
  const std::string name = fuzz::case_file_name(found);
  auto written = store(name, found);
  if (!written) return written.error();
  if (!options.has("--no-shrink")) {
    Progress progress("fuzz flip, shrinking", options);
    auto smaller = fuzz::shrink(found, 0, {}, [&](double share) { progress.show(share); });
    if (!smaller) return smaller.error();
    written = store("shrunk-" + name, smaller->flip_case);
    if (!written) return written.error();
    after.shrunk = *std::move(smaller);
  }
  if (found.shape.target != fuzz::Target::flip) return after;
  const fuzz::FlipCase& flip_case = after.shrunk ? after.shrunk->flip_case : found;
  const auto scorer = fuzz::FlipScorer::make(flip_case.shape);
  if (scorer) after.blame = fuzz::blame(*scorer, flip_case);
  return after;
}

}  // namespace kvsim
