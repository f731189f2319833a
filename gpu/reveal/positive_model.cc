// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/positive_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/engine/columns.h"
#include "sim/inputs.h"
#include "sim/philox.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// Which exp models give all that was seen, for each column of a row.
class ExpMatches {
 public:
  ExpMatches(std::size_t columns, std::size_t models)
      : columns_(columns), matches_(columns * models, true) {}

  void exclude(std::size_t column, std::size_t model) {
    matches_[model * columns_ + column] = false;
  }
  /// Whether a model gives everything in columns `begin` … `end` − 1.
  [[nodiscard]] bool all(std::size_t model, std::size_t begin, std::size_t end) const {
    const auto first = matches_.begin() + static_cast<std::ptrdiff_t>(model * columns_);
    return std::all_of(first + static_cast<std::ptrdiff_t>(begin),
                       first + static_cast<std::ptrdiff_t>(end), [](bool match) { return match; });
  }

 private:
  std::size_t columns_;
  std::vector<bool> matches_;
};

std::vector<ExpChoice> choices(const ExpMatches& matches, std::size_t columns) {
  const std::span<const ExpModelRow> models = exp_models();
  std::vector<ExpChoice> found;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (matches.all(i, 0, columns)) found.push_back({.exp = models[i].model});
  }
  for (const std::size_t group :
       {std::size_t{8}, std::size_t{16}, std::size_t{4}, std::size_t{32}, std::size_t{64}}) {
    const std::size_t body = columns - columns % group;
    if (body == columns || body == 0) continue;
    for (std::size_t i = 0; i < models.size(); ++i) {
      if (!matches.all(i, 0, body)) continue;
      for (std::size_t j = 0; j < models.size(); ++j) {
        if (i == j || !matches.all(j, body, columns)) continue;
        found.push_back({models[i].model, static_cast<std::int64_t>(group), models[j].model});
      }
    }
  }
  return found;
}

}  // namespace

Result<std::vector<float>> replay(const PositiveModel& model, std::int64_t terms,
                                  const PositiveOperator::Call& call) {
  std::vector<float> out(call.x.size());
  const std::string order = to_string(model.order);
  const std::int64_t rows = static_cast<std::int64_t>(call.x.size()) / terms;
  if (model.kind == PositiveKind::rms_norm) {
    const NormKernel kernel{.name = "replay",
                            .kind = NormKind::rms,
                            .order = order,
                            .product = model.product,
                            .root = model.root,
                            .weight = model.weight};
    const NormProblem problem{.storage = model.output,
                              .rows = rows,
                              .columns = terms,
                              .x = call.x.data(),
                              .weight = call.weight.empty() ? nullptr : call.weight.data(),
                              .epsilon = call.epsilon.value_or(0)};
    const auto done = apply_norm(kernel, problem, out.data());
    if (!done) return done.error();
    return out;
  }
  const SoftmaxKernel kernel{.name = "replay",
                             .order = order,
                             .exp = model.exp.exp,
                             .group = model.exp.group,
                             .tail_exp = model.exp.tail_exp,
                             .result = model.result};
  const SoftmaxProblem problem{
      .storage = model.output, .rows = rows, .columns = terms, .x = call.x.data()};
  const auto done = apply_softmax(kernel, problem, out.data());
  if (!done) return done.error();
  return out;
}

std::string to_string(const ExpChoice& exp) {
  std::string text(to_string(exp.exp));
  if (exp.group > 0) {
    text += fmt::format(", {} behind the last whole {}", to_string(exp.tail_exp), exp.group);
  }
  return text;
}

std::string_view to_string(SoftmaxResult result) {
  switch (result) {
    case SoftmaxResult::times_reciprocal:
      return "e × (1 ÷ sum)";
    case SoftmaxResult::quotient:
      return "e ÷ sum";
    case SoftmaxResult::sleef_logarithm:
      return "x − max − log sum, SLEEF's log";
    case SoftmaxResult::logarithm:
      break;
  }
  return "x − max − log sum";
}

std::string_view to_string(RootRule root) {
  return root == RootRule::one_over_root ? "1 ÷ √v" : "1/√v rounded once";
}

std::string_view to_string(WeightRule weight) {
  switch (weight) {
    case WeightRule::after_rounding:
      return "after rounding";
    case WeightRule::before_rounding:
      return "before rounding";
    case WeightRule::plus_one:
      break;
  }
  return "1 + weight";
}

Result<std::vector<ExpChoice>> find_exp(PositiveOperator& of, std::uint64_t seed) {
  if (of.kind() != PositiveKind::softmax) return std::vector<ExpChoice>{};
  const std::size_t n = index(of.terms());
  // Two models may differ in one of ten thousand arguments.
  const std::size_t count = std::clamp<std::size_t>(65536 / n, 32, 32 * index(of.capacity()));
  std::vector<float> x(count * n);
  constexpr std::uint64_t stream = std::uint64_t{1} << 40;
  // Below e^−28 ten thousand elements together are lost in the sum; above e^−80 none is subnormal.
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(-28 - 52 * uniform(seed, stream, i));
  }
  for (std::size_t row = 0; row < count; ++row) {
    x[row * n + philox_bits(seed, stream + 1, row) % n] = 0;
  }
  if (const auto done = round_values(of.input(), x, x); !done) return done.error();
  const auto out = of.run_rows({x});
  if (!out) return out.error();
  const std::span<const ExpModelRow> models = exp_models();
  ExpMatches matches(n, models.size());
  std::vector<float> e(x.size());
  for (std::size_t model = 0; model < models.size(); ++model) {
    ExpFunction(models[model].model).exp(x, e);
    if (const auto done = round_values(of.output(), e, e); !done) return done.error();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (e[i] != (*out)[i]) matches.exclude(i % n, model);
    }
  }
  return choices(matches, n);
}

}  // namespace kvsim::gpu
