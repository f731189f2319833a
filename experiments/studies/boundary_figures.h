// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/step_json.h"
#include "experiments/study.h"

/// What the records of `boundary` add up to.
namespace kvsim::experiments {

/// A step after the same tokens whose two largest logits are finite.
struct MarginStep {
  std::int64_t prompt = 0;
  double margin = 0;   ///< logits
  double ulps = 0;     ///< the same in units in the last place
  double error = 0;    ///< directional: by how much the second arm moves the difference of the two
  double largest = 0;  ///< |difference| of any logit
  bool flips = false;  ///< the argmax is another one
};

/// A text that parts from that of the second arm.
struct PartedText {
  std::int64_t prompt = 0;
  double flip = 0;            ///< step
  double length = 0;          ///< tokens of the text with the cache
  double same_tokens_kl = 0;  ///< nats: mean of all steps after the same tokens
  double own_tokens_kl = 0;   ///< mean of all steps, each after its own tokens, as the paper has it
  std::optional<double> apart_kl = {};  ///< mean of the steps behind the flip alone
};

/// One source of error.
struct SourceFigures {
  std::string against;  ///< the second arm
  std::string refused;  ///< why a text could not be compared; may be empty
  std::int64_t texts = 0;
  std::vector<MarginStep> steps;
  std::vector<PartedText> parted;

  /// √(mean of error²); 0 without steps.
  [[nodiscard]] double error_size() const;
  [[nodiscard]] std::int64_t flips() const;
};

struct BoundaryFigures {
  std::vector<std::string> order;  ///< sources as the records have them
  std::map<std::string, SourceFigures, std::less<>> sources;

  [[nodiscard]] std::int64_t flips() const;
};
/// Throws Json::exception.
[[nodiscard]] BoundaryFigures boundary_figures(const StudyRecords& records);

}  // namespace kvsim::experiments
