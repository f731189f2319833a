// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "gpu/reveal/positive_check.h"
#include "gpu/reveal/positive_reveal.h"
#include "sim/sum_tree.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// Results of one call on rows of fixed numbers.
Result<std::vector<float>> call(Backend& backend, const ReductionShape& shape,
                                std::span<const float> x) {
  auto of = PositiveOperator::make(backend, shape);
  if (!of) return of.error();
  return of->run({.x = x});
}

void count(Dependence& found, std::span<const float> a, std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++found.compared;
    found.different +=
        std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]) ? 1 : 0;
  }
}

/// The digest of an order's additions over so many terms; empty: it has none.
std::string tree_text(const Order& order, std::int64_t terms) {
  const auto tree = build_sum_tree(order, terms);
  return tree ? digest(addition_tree(*tree)) : std::string();
}

/// One number of elements.
struct Member {
  std::int64_t terms = 0;
  PositiveRevelation found;
};

/// Whether a row of so many elements, in which `own` was found, may have `exp`.
bool fits(const ExpChoice& exp, const ExpChoice& own, std::int64_t terms) {
  if (own == exp) return true;
  if (exp.group == 0 || own.group != 0) return false;
  return (terms % exp.group == 0 && own.exp == exp.exp) ||
         (terms < exp.group && own.exp == exp.tail_exp);
}

std::vector<ExpChoice> exps_of(const Member& member) {
  if (!member.found.exps.empty()) return member.found.exps;
  const auto& model = member.found.classes.front().model;
  return model ? std::vector{model->exp} : std::vector<ExpChoice>{};
}

std::optional<ExpChoice> shared_exp(std::span<const Member> members) {
  for (const Member& member : members) {
    for (const ExpChoice& exp : exps_of(member)) {
      const bool all = std::ranges::all_of(members, [&](const Member& other) {
        return std::ranges::any_of(
            exps_of(other), [&](const ExpChoice& own) { return fits(exp, own, other.terms); });
      });
      if (all) return exp;
    }
  }
  return std::nullopt;
}

std::optional<Order> shared_order(std::span<const Member> members) {
  for (const Member& member : members) {
    for (const Order& order : member.found.orders) {
      const bool all = std::ranges::all_of(members, [&](const Member& other) {
        return tree_text(order, other.terms) == digest(other.found.tree);
      });
      if (all) return order;
    }
  }
  return std::nullopt;
}

/// A model that all of them have, as far as their trees and what they show of exp tell.
std::optional<PositiveModel> shared_model(std::span<const Member> members) {
  std::optional<PositiveModel> shared;
  for (const Member& member : members) {
    const auto& model = member.found.classes.front().model;
    if (!model || !member.found.explained()) return std::nullopt;
    if (!shared) shared = model;
    if (model->result != shared->result || model->product != shared->product ||
        model->root != shared->root || model->weight != shared->weight) {
      return std::nullopt;
    }
  }
  const auto order = shared_order(members);
  if (!shared || !order) return std::nullopt;
  shared->order = *order;
  if (shared->kind == PositiveKind::rms_norm) return shared;
  const auto exp = shared_exp(members);
  if (!exp) return std::nullopt;
  shared->exp = *exp;
  return shared;
}

}  // namespace

Result<std::vector<Dependence>> positive_dependences(Backend& backend, const ReductionShape& shape,
                                                     std::int64_t threads, std::uint64_t seed) {
  auto of = PositiveOperator::make(backend, shape);
  if (!of) return of.error();
  const auto x = positive_rows(*of, nullptr, PositiveData::wide, of->rows(), seed, 5);
  if (!x) return x.error();
  const auto out = of->run({.x = *x});
  if (!out) return out.error();
  std::vector<Dependence> found;

  Dependence of_threads{.what = threads == 2 ? "1 thread" : "2 threads"};
  if (backend.set_threads(threads == 2 ? 1 : 2)) {
    const auto again = call(backend, shape, *x);
    if (!again) return again.error();
    count(of_threads, *out, *again);
    if (const auto set = backend.set_threads(threads); !set) return set.error();
  } else {
    of_threads.possible = false;
  }
  found.push_back(of_threads);

  Dependence of_rows{.what = "a row alone", .possible = shape.columns > 1};
  if (of_rows.possible) {
    ReductionShape alone = shape;
    alone.columns = 1;
    const auto again = call(backend, alone, std::span(*x).first(index(shape.terms)));
    if (!again) return again.error();
    count(of_rows, std::span(*out).first(index(shape.terms)), *again);
  }
  found.push_back(of_rows);

  const std::int64_t bytes = (shape.format.width() + 7) / 8;
  for (const std::int64_t elements : {1, 2, 4}) {
    ReductionShape moved = shape;
    moved.misalignment = (shape.misalignment + elements * bytes) % 64;
    Dependence of_place{.what = fmt::format("{} bytes off", elements * bytes)};
    const auto again = call(backend, moved, *x);
    if (!again) return again.error();
    count(of_place, *out, *again);
    found.push_back(of_place);
  }
  return found;
}

Result<std::vector<PositiveTermClass>> sweep_positive(Backend& backend, ReductionShape shape,
                                                      const RevealOptions& options,
                                                      SizeClass terms) {
  constexpr std::int64_t most = 256;
  if (terms.last - terms.first >= most) {
    return Error{ErrorKind::usage,
                 fmt::format("a sweep of {} takes at most {} sizes, each of which is revealed; "
                             "{} to {} are more",
                             shape.operation, most, terms.first, terms.last)};
  }
  std::vector<PositiveTermClass> classes;
  std::vector<Member> members;
  for (shape.terms = terms.first; shape.terms <= terms.last; ++shape.terms) {
    auto of = PositiveOperator::make(backend, shape);
    if (!of) return of.error();
    auto found = reveal_positive(*of, options);
    if (!found) return found.error();
    members.push_back({shape.terms, std::move(*found)});
    auto model = members.size() > 1 ? shared_model(members) : std::nullopt;
    if (model) {
      classes.back().terms.last = shape.terms;
      classes.back().found.classes.front().model = std::move(model);
      continue;
    }
    members.erase(members.begin(), members.end() - 1);
    classes.push_back({{shape.terms, shape.terms}, members.front().found});
  }
  return classes;
}

}  // namespace kvsim::gpu
