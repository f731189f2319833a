// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/experiments/statistics/reference.h"

#include <cmath>
#include <fstream>

namespace kvsim::statistics {

const nlohmann::json& reference(const std::string& function) {
  static const nlohmann::json all = [] {
    std::ifstream file(KVSIM_SOURCE_DIR "/tests/experiments/statistics/reference.json");
    return nlohmann::json::parse(file);
  }();
  return all.at(function);
}

std::vector<double> numbers(const nlohmann::json& list) { return list; }

void expect_near(double found, double expected, const char* what, double relative) {
  EXPECT_NEAR(found, expected, relative * std::fabs(expected)) << what;
}

}  // namespace kvsim::statistics
