// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/path_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "sim/attention/splits.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/formats.h"

namespace kvsim::fuzz {
namespace {

constexpr double u = 0x1p-24;         // unit roundoff of binary32
constexpr double flushed = 0x1p-125;  // a probability that small may become 0

Error no_bound_for(std::string_view kernel, std::string_view why) {
  return {ErrorKind::usage,
          fmt::format("attention kernel {}: no bound on its error is known ({})", kernel, why)};
}

/// n roundings of relative error u: γ_n.
double roundings(double n) {
  const double product = n * u;
  return product < 0.5 ? outward(product / (1 - product)) : no_bound;
}

/// a ÷ b, rounded up.
std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What keeps this rule from being one that PathBound describes; empty if nothing does.
std::string_view outside(const AttentionKernel& kernel) {
  if (kernel.eager != nullptr) {
    const EagerRule& rule = *kernel.eager;
    if (rule.scale_on_both) return "q and k are scaled apart";
    if (rule.softmax_in_storage) return "its softmax is rounded to storage";
    if (!rule.scores_kernel.empty()) return "its sums are chosen by other tables";
    return {};
  }
  if (kernel.tiles == nullptr) return "only online tiles and eager kernels have one";
  const TileRule& rule = *kernel.tiles;
  if (rule.fold != ExponentFold::fused && rule.fold != ExponentFold::unfused) {
    return "how it scales exponents";
  }
  if (rule.row_sum == RowSumRule::unit) return "its row sum is made on a matrix unit";
  if (rule.emulated_exponentials) return "it emulates exponentials";
  if (rule.rescale_threshold != 0 || rule.flush_below != 0 || rule.maximum_offset != 0) {
    return "how it takes the maximum";
  }
  if (rule.operands_in_half || rule.output_in_binary32 || rule.divides) return "its formats";
  if (rule.merge == SplitMerge::serial_states) return "how it merges splits";
  return {};
}

}  // namespace

Result<ProductSumBound> ProductSumBound::make(std::string_view order,
                                              const softfloat::Format& input, std::int64_t terms,
                                              std::int64_t chains) {
  const Result<Order> parsed = parse_order(order);
  if (!parsed) return parsed.error();
  ProductSumBound bound;
  const std::optional<MatrixUnit> unit = unit_of(*parsed);
  if (!unit) {
    bound.rounded_.emplace(RoundingUnits(softfloat::binary32), *parsed, terms * chains);
    return bound;
  }
  const RoundingUnits output(unit->output);
  bound.smallest_factor_ = RoundingUnits(input).smallest_normal;
  // One block errs by `relative_` of the largest magnitude in it: see UnitErrors in
  // sim/predict/running_bound.cc for the cuts of each operation.
  const double conversion = unit->conversion == OutputConversion::rz_e8m13 ? 0x1p-13
                            : unit->conversion == OutputConversion::rz_fp32
                                ? 2 * output.unit_roundoff
                                : output.unit_roundoff;
  double relative = conversion;
  if (unit->operation == UnitOperation::t_fdpa) {
    relative += (unit->fan_in + 1) * std::ldexp(1.0, -unit->fraction_bits);
    bound.floor_ = std::ldexp(1.0, unit->zero_exponent);
  } else if (unit->operation == UnitOperation::tr_fdpa ||
             unit->operation == UnitOperation::gtr_fdpa) {
    const int beside = unit->operation == UnitOperation::gtr_fdpa ? 3 : 1;
    relative += (unit->fan_in + beside) * std::ldexp(1.0, -unit->fraction_bits) +
                std::ldexp(1.0, -unit->final_bits - 1) +
                (unit->final_rounding_down ? std::ldexp(1.0, -unit->final_bits) : 0);
    bound.floor_ = output.smallest_normal;
  } else if (unit->operation != UnitOperation::e_fdpa) {
    return Error{ErrorKind::usage,
                 fmt::format("matrix unit {}: no bound on its error is known", to_string(*unit))};
  }
  if (parsed->items.size() != 1 || unit->addend != Addend::first) {
    return Error{ErrorKind::usage, fmt::format("order {}: no bound on its error is known", order)};
  }
  const auto blocks = static_cast<double>(chains * unit->blocks *
                                          up(terms, std::int64_t{unit->fan_in} * unit->blocks));
  const double total = blocks * relative;
  bound.relative_ = total < 0.5 ? outward(total / (1 - total)) : no_bound;
  bound.quanta_ = 4 * blocks * output.half_quantum;
  return bound;
}

double ProductSumBound::operator()(double absolute_sum, const FactorMagnitudes& factors,
                                   double weight) const {
  if (rounded_) return outward((*rounded_)(absolute_sum) + weight * (*rounded_)(0));
  // Every term, partial sum and alignment in the chain is at most that large.
  const double aligned =
      absolute_sum +
      weight * (floor_ + smallest_factor_ * (factors.a + factors.b + smallest_factor_));
  return outward(relative_ * aligned + weight * quanta_);
}

Result<PathBound> PathBound::make(const AttentionKernel& kernel, const AttentionProblem& problem) {
  if (const std::string_view why = outside(kernel); !why.empty()) {
    return no_bound_for(kernel.name, why);
  }
  const auto sums = std::ranges::find(kernel.storages, problem.storage, &StorageSums::storage);
  if (sums == kernel.storages.end()) {
    return Error{ErrorKind::usage,
                 fmt::format("attention kernel {}: has no tensors of {}", kernel.name,
                             softfloat::format_name(problem.storage))};
  }
  const AttentionShape& shape = problem.shape;
  std::int64_t splits = 1;
  std::int64_t tiles = 1;
  std::int64_t columns = shape.kv_len;
  if (kernel.tiles != nullptr) {
    const SplitPlan plan = plan_splits(kernel, shape, problem.mask, problem.launch);
    splits = plan.splits;
    columns = plan.block_columns;
    const std::int64_t blocks = up(shape.kv_len, columns);
    // A split may begin within a block of the whole sequence.
    tiles = splits == 1 ? blocks : up(blocks, splits) + 1;
  }
  const auto scores = ProductSumBound::make(sums->scores, problem.storage, shape.head_dim, 1);
  if (!scores) return scores.error();
  const auto values = ProductSumBound::make(sums->values, problem.storage, columns, tiles);
  if (!values) return values.error();
  PathBound bound(*scores, *values, problem.storage);
  bound.eager_ = kernel.eager != nullptr;
  bound.tiles_ = static_cast<double>(tiles);
  bound.splits_ = static_cast<double>(splits);
  bound.log_keys_ =
      0.7 * static_cast<double>(std::bit_width(static_cast<std::uint64_t>(shape.kv_len)));
  bound.head_dim_scale_ = outward(1 / std::sqrt(static_cast<double>(shape.head_dim)));
  if (kernel.eager != nullptr) {
    const Result<Order> order = parse_order(kernel.eager->row_sum);
    if (!order) return order.error();
    bound.row_sum_ = roundings(static_cast<double>(height(*order, shape.kv_len) + 1));
  } else {
    bound.unfused_ = kernel.tiles->fold == ExponentFold::unfused;
    // Additions and rescalings that one probability goes through, in any of the rules.
    const double per_tile =
        kernel.tiles->row_sum == RowSumRule::butterfly ? 3 : static_cast<double>(columns) / 4 + 4;
    bound.row_sum_ = roundings(bound.tiles_ * per_tile + 40);
  }
  return bound;
}

double PathBound::of_head(const ExactHead& head) const {
  const std::size_t keys = head.score.size();
  // How far the kernel's scores are from the exact ones.
  std::vector<double> score_error(keys);
  double largest_error = 0;
  double magnitude = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    double error =
        head_dim_scale_ * scores_(outward(head.score_absolute[j] / head_dim_scale_ * (1 + 0x1p-30)),
                                  {head.largest_query, head.largest_key});
    const double score = std::abs(head.score[j]);
    if (eager_) {
      // Rounded to storage, multiplied by the rounded scale, rounded again.
      const double stored = std::max(storage_.unit_roundoff * (score + error),
                                     head_dim_scale_ * storage_.half_quantum);
      error += stored;
      error += (3.2 * u + storage_.unit_roundoff) * (score + error) + 2 * storage_.half_quantum;
    }
    score_error[j] = error;
    largest_error = std::max(largest_error, error);
    magnitude = std::max(magnitude, score + error);
  }

  // Of each weight, relative: score, exponent, exponential.
  double most = 0;
  double moved_weights = 0;
  double rounded_weights = 0;
  double along_absolute = 0;
  double along_rounded = 0;
  double values_absolute = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    const double gap = head.largest_score - head.score[j] + 2 * largest_error;
    const double fixed = eager_ ? gap + 2 : (unfused_ ? 2 : 1) * magnitude + 6.1 * gap + tiles_ + 1;
    const double moved = expm1_above(outward(score_error[j] + 1.02 * u * fixed));
    most = std::max(most, moved);
    const double p = head.weight[j] / head.weight_sum;
    const double y = std::abs(head.along[j]);
    moved_weights += p * moved * std::abs(head.along[j] - head.difference);
    // The probability that multiplies V, rounded to storage: relative to the largest weight, or
    // after the division by their sum.
    const double quantum = eager_ ? storage_.half_quantum : storage_.half_quantum / head.weight_sum;
    const double rounding = std::max((storage_.unit_roundoff + (eager_ ? 1.01 * u : 0)) * p,
                                     quantum + (eager_ ? 1.01 * u * p : 0));
    rounded_weights += rounding * y;
    along_absolute += p * y;
    along_rounded += (p + rounding) * head.along_absolute[j];
    values_absolute += flushed * y;
  }
  if (!(most < 0.25) || !(row_sum_ < 0.25)) return no_bound;
  along_rounded = outward(along_rounded * (1 + most));

  double error = moved_weights + (1 + most) * rounded_weights + values_absolute;
  error += (1 + most) * row_sum_ * std::abs(head.difference);
  // P·V for all elements of the head at once: its bound is linear in the magnitudes. Rescalings.
  error += values_(along_rounded, {1.01, head.largest_value}, head.token_absolute);
  error += tiles_ * 1.01 * u * along_rounded;
  if (splits_ > 1) {
    // Weights of the splits from their logarithms of sums, each a handful of roundings of numbers
    // as large as the largest score and the logarithm of the number of keys.
    const double logarithms = 12 * magnitude + 12 * log_keys_ + splits_ + 16;
    const double weights = expm1_above(outward(2 * row_sum_ + 1.02 * u * logarithms));
    error += weights * along_absolute + (splits_ + 4) * 1.01 * u * along_rounded;
  }
  return outward(error * (1 + row_sum_) / ((1 - most) * (1 - row_sum_)));
}

double PathBound::operator()(std::span<const ExactHead> heads, std::span<const float> outputs,
                             std::span<const float> tokens) const {
  double bound = 0;
  for (const ExactHead& head : heads) bound += of_head(head);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double weight =
        std::abs(static_cast<double>(tokens[i]) - static_cast<double>(tokens[i + outputs.size()]));
    const double output = outputs[i];
    // Rounded to storage; before that 1 ÷ l and its product, where eager kernels have a sum alone.
    bound += weight * (rounding_error(storage_, output) + 2.1 * u * std::abs(output));
  }
  return std::isnan(bound) ? no_bound : outward(bound);
}

}  // namespace kvsim::fuzz
