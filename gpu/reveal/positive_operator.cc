// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "gpu/operators.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

constexpr std::array<std::string_view, 3> names{"softmax", "log-softmax", "rms-norm"};

}  // namespace

std::span<const std::string_view> positive_operators() { return names; }

std::optional<PositiveKind> positive_kind(std::string_view name) {
  for (const PositiveKind kind :
       {PositiveKind::softmax, PositiveKind::log_softmax, PositiveKind::rms_norm}) {
    if (names.at(static_cast<std::size_t>(kind)) == name) return kind;
  }
  return std::nullopt;
}

Result<PositiveOperator> PositiveOperator::make(Backend& backend, ReductionShape shape) {
  const std::optional<PositiveKind> kind = positive_kind(shape.operation);
  if (!kind) {
    return Error{ErrorKind::usage,
                 fmt::format("operator '{:.40}' adds no terms of one sign; accepted: {}",
                             shape.operation, fmt::join(names, ", "))};
  }
  for (const auto& [name, size] : {std::pair{"m", shape.rows}, std::pair{"batch", shape.batch}}) {
    if (size == 1) continue;
    return Error{ErrorKind::usage, fmt::format("{} of {} is {}; accepted: nothing but 1", name,
                                               shape.operation, size)};
  }
  for (const auto& [name, size] : {std::pair{"n", shape.columns}, std::pair{"k", shape.terms}}) {
    if (size >= 1) continue;
    return Error{ErrorKind::usage,
                 fmt::format("{} of {} is {}; accepted: 1 or more", name, shape.operation, size)};
  }
  return PositiveOperator(backend, std::move(shape), *kind);
}

double PositiveOperator::epsilon() const {
  const OperatorCall call{.operation = shape_.operation, .attributes = shape_.attributes};
  const auto value = number_attribute(call, "eps", 1e-6);
  return value ? *value : 1e-6;
}

std::string PositiveOperator::description() const {
  return fmt::format("{} of {}, N = {}, K = {}, {}", shape_.operation, backend_->name(), rows(),
                     terms(), softfloat::format_name(shape_.format));
}

Result<std::vector<float>> PositiveOperator::run(const Call& call) {
  ++calls_;
  OperatorCall made{.operation = shape_.operation, .attributes = shape_.attributes};
  made.inputs.push_back({.format = shape_.format,
                         .shape = {rows(), terms()},
                         .values = {call.x.begin(), call.x.end()},
                         .misalignment = shape_.misalignment});
  if (!call.weight.empty()) {
    made.inputs.push_back({.format = shape_.format,
                           .shape = {terms()},
                           .values = {call.weight.begin(), call.weight.end()}});
  }
  if (kind_ == PositiveKind::rms_norm) {
    made.attributes["eps"] = fmt::to_string(call.epsilon ? *call.epsilon : epsilon());
  }
  Result<Tensor> result = backend_->run(made);
  if (!result) return result.error();
  output_ = result->format;
  if (result->values.size() != call.x.size()) {
    return Error{ErrorKind::file, fmt::format("{}: {} numbers came back in place of {}",
                                              description(), result->values.size(), call.x.size())};
  }
  return std::move(result->values);
}

Result<std::vector<float>> PositiveOperator::run_rows(const Call& call) {
  const auto width = static_cast<std::size_t>(terms());
  const std::size_t asked = call.x.size() / width;
  const auto slots = static_cast<std::size_t>(capacity());
  const auto place = [&](std::size_t slot) {
    return width * (places_.empty() ? slot : static_cast<std::size_t>(places_[slot]));
  };
  std::vector<float> all(call.x.size());
  for (std::size_t begin = 0; begin < asked; begin += slots) {
    const std::size_t used = std::min(slots, asked - begin);
    std::vector<float> x(static_cast<std::size_t>(rows()) * width);
    for (std::size_t at = 0; at < x.size(); at += width) {
      std::ranges::copy(call.x.first(width), x.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (std::size_t i = 0; i < used; ++i) {
      std::ranges::copy(call.x.subspan((begin + i) * width, width),
                        x.begin() + static_cast<std::ptrdiff_t>(place(i)));
    }
    const auto out = run({x, call.weight, call.epsilon});
    if (!out) return out.error();
    for (std::size_t i = 0; i < used; ++i) {
      std::ranges::copy(std::span(*out).subspan(place(i), width),
                        all.begin() + static_cast<std::ptrdiff_t>((begin + i) * width));
    }
  }
  return all;
}

}  // namespace kvsim::gpu
