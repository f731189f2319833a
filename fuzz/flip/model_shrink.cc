// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/model_shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "fuzz/flip/shrink.h"

namespace kvsim::fuzz {
namespace {

/// The case without the tokens from `first` on; some of the prompt stay.
ModelCase without_tokens(const ModelCase& from, std::int64_t first, std::int64_t count) {
  ModelCase result = from;
  result.ids.erase(result.ids.begin() + first, result.ids.begin() + first + count);
  const std::int64_t of_prompt = std::clamp<std::int64_t>(from.prompt_tokens - first, 0, count);
  result.prompt_tokens -= of_prompt;
  return result;
}

class ModelShrinker {
 public:
  ModelShrinker(const ModelScorer& scorer, std::int64_t most,
                const std::function<void(double)>& progress)
      : scorer_(scorer), most_(most), progress_(progress) {}

  Result<ShrunkModelCase> run(const ModelCase& model_case, double floor) {
    Result<ModelFlip> flip = scorer_.judge(model_case);
    if (!flip) return flip.error();
    if (!flip->holds()) {
      return Error{ErrorKind::cannot_tell, "there is nothing to shrink: no flip"};
    }
    best_.value_before = flip->ratio();
    best_.floor = floor > 0              ? floor
                  : model_case.floor > 0 ? model_case.floor
                                         : default_floor_share * flip->ratio();
    if (flip->ratio() < best_.floor) {
      return Error{ErrorKind::cannot_tell,
                   fmt::format("{:.3g} of twice the observed errors is below the floor of {:.3g}",
                               flip->ratio(), best_.floor)};
    }
    best_.flip = std::move(*flip);
    best_.before = size_of(model_case);
    for (bool changed = true; changed && !failed_ && !is_over();) {
      changed = drop_tokens();
      changed |= read_more_at_once();
    }
    if (failed_) return *failed_;
    best_.complete = !is_over();
    best_.flip.flip_case.floor = best_.floor;
    best_.after = size_of(best_.flip.flip_case);
    return std::move(best_);
  }

 private:
  [[nodiscard]] const ModelCase& now() const { return best_.flip.flip_case; }
  [[nodiscard]] bool is_over() const { return failed_.has_value() || best_.tried >= most_; }

  /// Spans of tokens, halves of the text first.
  bool drop_tokens() {
    bool changed = false;
    for (std::int64_t size = std::ssize(now().ids) / 2; size > 0; size /= 2) {
      for (std::int64_t first = 0; first + size <= std::ssize(now().ids) && !is_over();) {
        const ModelCase candidate = without_tokens(now(), first, size);
        const bool kept = candidate.prompt_tokens > 0 && keep(candidate);
        if (!kept) first += size;
        changed |= kept;
      }
    }
    return changed;
  }

  /// All of the text as the prompt, half of what is generated, one token of it.
  bool read_more_at_once() {
    bool changed = false;
    for (std::int64_t more = size_of(now()).generated_tokens; more > 0 && !is_over(); more /= 2) {
      ModelCase candidate = now();
      candidate.prompt_tokens += more;
      if (candidate.prompt_tokens <= std::ssize(candidate.ids)) {
        changed |= keep(candidate);
      }
    }
    return changed;
  }

  bool keep(const ModelCase& candidate) {
    ++best_.tried;
    if (progress_) progress_(static_cast<double>(best_.tried) / static_cast<double>(most_));
    Result<ModelFlip> flip = scorer_.judge(candidate);
    if (!flip) {
      failed_ = flip.error();
      return false;
    }
    if (!flip->holds() || flip->ratio() < best_.floor) return false;
    best_.flip = std::move(*flip);
    return true;
  }

  const ModelScorer& scorer_;
  std::int64_t most_;
  const std::function<void(double)>& progress_;
  ShrunkModelCase best_;
  std::optional<Error> failed_;
};

}  // namespace

ModelCaseSize size_of(const ModelCase& model_case) {
  return {model_case.prompt_tokens, std::ssize(model_case.ids) - model_case.prompt_tokens};
}

Result<ShrunkModelCase> shrink(const ModelScorer& scorer, const ModelCase& model_case, double floor,
                               std::int64_t most, const std::function<void(double)>& progress) {
  return ModelShrinker(scorer, most, progress).run(model_case, floor);
}

}  // namespace kvsim::fuzz
