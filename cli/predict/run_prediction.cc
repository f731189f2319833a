// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/run_prediction.h"

#include "cli/predict/prediction_options.h"
#include "cli/predict/prediction_report.h"
#include "cli/progress.h"
#include "sim/predict/prediction.h"

namespace kvsim {

Result<Answer> run_prediction(const ParsedOptions& options) {
  auto request = prediction_request(options);
  if (!request) return request.error();
  const Result<Prediction> prediction = [&] {
    Progress progress("predict", options);
    PredictionOptions run = request->options;
    run.progress = [&](double share) { progress.show(share); };
    return predict(run);
  }();
  if (!prediction) return prediction.error();
  Answer answer;
  answer.report = prediction_report(*prediction, *request);
  if (!prediction->controls_passed) {
    answer.exit_code = ExitCode::check_failed;
    answer.complaint = "a control that must be 0 is not: a defect of kvsim";
  }
  return answer;
}

}  // namespace kvsim
