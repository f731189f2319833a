// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "experiments/controls/controls.h"
#include "experiments/studies/behaviour.h"
#include "experiments/studies/boundary.h"
#include "experiments/studies/drift.h"
#include "experiments/studies/falsify.h"
#include "experiments/studies/gqa.h"
#include "experiments/studies/high_precision_cache.h"
#include "experiments/studies/localise.h"
#include "experiments/studies/noise.h"
#include "experiments/studies/precision.h"
#include "experiments/studies/predicted.h"
#include "experiments/studies/refresh.h"
#include "experiments/studies/replay.h"
#include "model/quote.h"

namespace kvsim::experiments {

std::span<const StudyRow> study_rows() {
  static constexpr std::array rows{
      StudyRow{"behaviour", "how often, where and how far do texts with and without cache part?",
               make_behaviour},
      StudyRow{"drift", "how far apart are the inner states with and without cache?", make_drift},
      StudyRow{"boundary", "do margin and error say which tokens flip, and how often?",
               make_boundary},
      StudyRow{"precision", "which formats keep the tokens, and what does it cost?",
               make_precision},
      StudyRow{"gqa", "do query heads that share keys and values amplify rounding?", make_gqa},
      StudyRow{"falsify", "what grows with length, layer and format, and what only seems to?",
               make_falsify},
      StudyRow{"localise", "where is the difference: in the cache, in which part of it?",
               make_localise},
      StudyRow{"noise", "does noise in the cache turn texts as often as another way of making it?",
               make_noise},
      StudyRow{"replay", "is a cache made again over the same tokens the one that was?",
               make_replay},
      StudyRow{"refresh", "what does a cache computed anew every n tokens cost, and bring?",
               make_refresh},
      StudyRow{"high-precision-cache", "does a cache of float32 numbers keep texts together?",
               make_high_precision_cache},
      StudyRow{"predicted", "does predict say how far states drift, and how often tokens flip?",
               make_predicted},
  };
  return rows;
}

Result<const StudyRow*> study_named(std::string_view name) {
  if (name == controls_row().name) return &controls_row();
  std::vector<std::string_view> names{controls_row().name};
  names.reserve(study_rows().size() + 1);
  for (const StudyRow& row : study_rows()) {
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return Error{ErrorKind::usage,
               fmt::format("a study {}; accepted: {}", quote(name), fmt::join(names, ", "))};
}

Result<StudySummary> summarize(const StudyRow& row, const StudyRecords& records) {
  try {
    return row.make()->summarize(records);
  } catch (const Json::exception& thrown) {
    return Error{ErrorKind::file,
                 fmt::format("records of {}: {}", row.name, quote(thrown.what(), 200))};
  }
}

}  // namespace kvsim::experiments
