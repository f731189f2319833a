// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/fused_node_unit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "gpu/probe/prober.h"
#include "gpu/probe/property.h"
#include "gpu/probe/row_builder.h"
#include "softfloat/host.h"

namespace kvsim::gpu {

FusedNodeUnit::FusedNodeUnit(ProbeCalls& calls, const Reduction& reduction,
                             std::vector<std::int32_t> terms)
    : calls_(calls), terms_(std::move(terms)) {
  shape_.operand = reduction.input();
  shape_.input = reduction.input();
  shape_.output = reduction.output();
  shape_.products = static_cast<int>(terms_.size());
}

Result<std::vector<softfloat::Bits>> FusedNodeUnit::run(std::span<const ProbeRow> rows) {
  std::vector<std::vector<double>> products;
  products.reserve(rows.size());
  std::vector<int> smallest(terms_.size(), 0);
  for (const ProbeRow& row : rows) {
    if (row.c != 0) {
      return Error{ErrorKind::cannot_tell, "a fused node of a sum has no c that can be chosen"};
    }
    std::vector<double>& own = products.emplace_back();
    own.reserve(terms_.size());
    for (std::size_t k = 0; k < terms_.size(); ++k) {
      own.push_back(softfloat::to_double(shape_.operand, row.a[k]) *
                    softfloat::to_double(shape_.operand, row.b[k]));
      if (own.back() != 0) smallest[k] = std::min(smallest[k], std::ilogb(own.back()));
    }
  }
  // One left factor for all rows, so small that right factors are normal where they can be.
  const softfloat::Format& input = shape_.input;
  std::vector<float> shared(static_cast<std::size_t>(calls_.terms()), 1);
  std::vector<ProbeCalls::Sparse> questions(rows.size());
  for (std::size_t k = 0; k < terms_.size(); ++k) {
    const int left =
        std::clamp(smallest[k] - input.emin(), input.emin() - input.precision + 1, input.emax());
    shared[static_cast<std::size_t>(terms_[k])] = std::ldexp(1.0F, left);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (products[i][k] == 0) continue;
      const double right = std::ldexp(products[i][k], -left);
      if (!exact_code(input, right)) {
        return Error{ErrorKind::cannot_tell, "products of one call are too far apart"};
      }
      questions[i].emplace_back(terms_[k], static_cast<float>(right));
    }
  }
  const auto sums = calls_.run(shared, questions);
  if (!sums) return sums.error();
  std::vector<softfloat::Bits> codes;
  codes.reserve(sums->size());
  for (const float sum : *sums) {
    codes.push_back(exact_code(shape_.output, static_cast<double>(sum))
                        .value_or(shape_.output.canonical_nan()));
  }
  return codes;
}

namespace {

/// The terms of the last fused node that has four or more.
std::vector<std::int32_t> last_terms(const AdditionTree& tree) {
  std::vector<std::int32_t> terms;
  for (const AdditionTree::Node& sum : tree.nodes()) {
    if (sum.children.size() < 3 || sum.exact) continue;
    std::vector<std::int32_t> own;
    own.reserve(sum.children.size());
    for (const std::int32_t child : sum.children) {
      const AdditionTree::Node& node = tree.nodes()[static_cast<std::size_t>(child)];
      if (node.term >= 0) own.push_back(static_cast<std::int32_t>(node.term));
    }
    if (own.size() >= 4) terms = std::move(own);
  }
  return terms;
}

/// Why nothing can be asked; empty where it can.
std::string_view obstacle(const Reduction& reduction, const std::vector<std::int32_t>& terms,
                          const ArithmeticFindings& found) {
  if (terms.empty()) return "fewer than 4 terms meet in a fused node";
  if (!reduction.has_left()) return "there are no products";
  if (!found.fraction_bits || found.sums.empty() || found.sums.front().precision == 0) {
    return "its fraction bits are not seen";
  }
  if (reduction.output().precision < found.sums.front().precision) {
    return "results have fewer bits than sums";
  }
  return {};
}

}  // namespace

Result<bool> add_zero_exponent(ProbeCalls& calls, const Reduction& reduction,
                               const AdditionTree& tree, ArithmeticFindings& found) {
  if (found.fan_in == 0) return true;
  std::vector<std::int32_t> terms = last_terms(tree);
  found.why_no_zero_exponent = obstacle(reduction, terms, found);
  if (!found.why_no_zero_exponent.empty()) return true;
  FusedNodeUnit node(calls, reduction, std::move(terms));
  UnitStructure structure;
  structure.fan_in = node.shape().products;
  Prober prober(node, structure);
  prober.add(property::precision, seen_number(found.sums.front().precision));
  prober.add(property::rounding, seen_word(to_string(found.sums.front().rounding)));
  prober.add(property::fraction_bits, seen_number(found.fraction_bits.value_or(0)));
  find_zero_exponent(prober);
  const auto& error = prober.error();
  if (error && error->kind != ErrorKind::cannot_tell) return *error;
  if (!error) found.zero_exponent = prober.found(property::zero_exponent);
  if (found.zero_exponent.kind == Seen::Kind::not_visible) {
    found.why_no_zero_exponent = "products do not reach the smallest result";
  }
  return true;
}

}  // namespace kvsim::gpu
