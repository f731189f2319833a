// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "softfloat/result.h"

/// What other programs say: reference.json, made by make_reference.py.
namespace kvsim::statistics {

/// The cases of one function.
const nlohmann::json& reference(const std::string& function);

/// A list of numbers of a case.
std::vector<double> numbers(const nlohmann::json& list);

/// Equal but for `relative` of the expected number: half a unit of the ninth digit and little more.
void expect_near(double found, double expected, const char* what, double relative = 6e-9);

/// An error of that kind, whose message has that text and no line break.
template <class T>
void expect_error(const Result<T>& result, ErrorKind kind, std::string_view text) {
  ASSERT_FALSE(result.has_value()) << "no error with " << text;
  EXPECT_EQ(result.error().kind, kind) << result.error().message;
  EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
}

}  // namespace kvsim::statistics
