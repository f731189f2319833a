// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "experiments/protocol/step_json.h"

#include <cstddef>

#include "experiments/tables.h"

namespace kvsim::experiments {

Json steps_json(const std::vector<ForcedStep>& steps) {
  const auto logits = [](const std::optional<Margin>& margin) {
    return margin ? std::optional(margin->logits) : std::nullopt;
  };
  const auto ulps = [](const std::optional<Margin>& margin) {
    return margin ? std::optional(margin->ulps) : std::nullopt;
  };
  Json arrays = {{"kl", Json::array()},
                 {"js", Json::array()},
                 {"largest_logit_difference", Json::array()},
                 {"argmax_differs", Json::array()},
                 {"on_margin", Json::array()},
                 {"on_margin_ulps", Json::array()},
                 {"off_margin", Json::array()},
                 {"top_two_error", Json::array()}};
  for (const ForcedStep& step : steps) {
    arrays["kl"].push_back(json_of(step.kl));
    arrays["js"].push_back(json_of(step.js));
    arrays["largest_logit_difference"].push_back(step.difference.largest);
    arrays["argmax_differs"].push_back(step.first_argmax != step.second_argmax);
    arrays["on_margin"].push_back(json_of(logits(step.first_margin)));
    arrays["on_margin_ulps"].push_back(json_of(ulps(step.first_margin)));
    arrays["off_margin"].push_back(json_of(logits(step.second_margin)));
    arrays["top_two_error"].push_back(json_of(step.top_two_error));
  }
  return arrays;
}

std::vector<RecordedStep> recorded_steps(const Json& arrays) {
  std::vector<RecordedStep> steps(arrays.at("kl").size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    RecordedStep& step = steps[i];
    step.kl = number_of(arrays.at("kl").at(i)).value_or(0);
    step.js = number_of(arrays.at("js").at(i)).value_or(0);
    step.largest_logit_difference = arrays.at("largest_logit_difference").at(i).get<double>();
    step.argmax_differs = arrays.at("argmax_differs").at(i).get<bool>();
    step.on_margin = number_of(arrays.at("on_margin").at(i));
    step.on_margin_ulps = number_of(arrays.at("on_margin_ulps").at(i));
    step.top_two_error = number_of(arrays.at("top_two_error").at(i));
  }
  return steps;
}

}  // namespace kvsim::experiments
