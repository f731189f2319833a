// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/sim_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "gpu/operators.h"
#include "sim/engine/matrix.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::Format;

Result<Format> format_attribute(const OperatorCall& call, std::string_view name,
                                const Format& otherwise) {
  const std::string text = text_attribute(call, name, "");
  if (text.empty()) return otherwise;
  const softfloat::NamedFormat* const row = softfloat::find_format(text);
  if (row != nullptr) return row->format;
  return Error{ErrorKind::usage,
               fmt::format("{}: attribute {}={:.40} is no format", call.operation, name, text)};
}

/// What the attributes of an ordered call say.
struct OrderedSettings {
  Order order;
  Product product = Product::rounded;
  Format accumulator;
  Format output;
};

Result<OrderedSettings> ordered_settings(const OperatorCall& call) {
  OrderedSettings settings;
  auto order = parse_order(text_attribute(call, "order", "sequential"));
  if (!order) return order.error();
  settings.order = std::move(*order);
  const auto product = parse_product(text_attribute(call, "product", "rounded"));
  if (!product) return product.error();
  settings.product = *product;
  const auto accumulator = format_attribute(call, "accumulator", softfloat::binary32);
  if (!accumulator) return accumulator.error();
  settings.accumulator = *accumulator;
  const auto output = format_attribute(call, "output", call.inputs[0].format);
  if (!output) return output.error();
  settings.output = *output;
  if (call.operation == "mean" && settings.accumulator != softfloat::binary32) {
    return Error{ErrorKind::usage, fmt::format("mean: accumulator {} is not binary32",
                                               softfloat::format_name(settings.accumulator))};
  }
  return settings;
}

/// Where the two sides of the product lie.
struct Sides {
  const float* left = nullptr;
  const float* right = nullptr;
  std::vector<float> ones;
};

Sides sides_of(const OperatorCall& call, const ProductShape& shape) {
  Sides sides;
  if (shape.plain_sum) {
    sides.ones.assign(static_cast<std::size_t>(shape.terms), 1.0F);
    sides.left = sides.ones.data();
    sides.right = call.inputs[0].values.data();
  } else {
    sides.left = call.inputs[shape.swapped ? 1 : 0].values.data();
    sides.right = call.inputs[shape.swapped ? 0 : 1].values.data();
  }
  return sides;
}

/// Adds the bias, divides by n for a mean: each rounded to the accumulator.
Result<bool> finish(const OperatorCall& call, const ProductShape& shape, const Format& accumulator,
                    std::vector<float>& values) {
  if (call.operation == "mean") {
    for (float& value : values) value /= static_cast<float>(shape.terms);
  }
  if (call.operation == "linear" && call.inputs.size() > 2) {
    // round(Σ + bias): an exact sum of the two, whatever the accumulator.
    const std::vector<float>& bias = call.inputs[2].values;
    const std::vector<float> ones(2, 1.0F);
    std::vector<float> pairs(2 * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      pairs[2 * i] = values[i];
      pairs[2 * i + 1] = bias[i % bias.size()];
    }
    const MatrixProblem sum{.order = {{OrderItem{}}},
                            .product = Product::rounded,
                            .input = softfloat::binary32,
                            .accumulator = accumulator,
                            .rows = 1,
                            .terms = 2,
                            .columns = static_cast<std::int64_t>(values.size()),
                            .a = ones.data(),
                            .a_stride = 2,
                            .b = pairs.data(),
                            .b_stride = 2,
                            .b_transposed = true};
    return sum_matrix(sum, values.data(), sum.columns);
  }
  return true;
}

}  // namespace

ProductShape product_shape(const OperatorCall& call) {
  const std::vector<std::int64_t>& a = call.inputs[0].shape;
  const std::string& name = call.operation;
  if (name == "sum" || name == "mean") {
    const auto count = static_cast<std::int64_t>(call.inputs[0].values.size());
    return {
        .terms = a.back(), .columns = count / a.back(), .b_by_columns = true, .plain_sum = true};
  }
  if (name == "dot") return {.terms = a[0]};
  if (name == "gemv") {
    return {.terms = a[1], .columns = a[0], .b_by_columns = true, .swapped = true};
  }
  const std::vector<std::int64_t>& b = call.inputs[1].shape;
  if (name == "linear") {
    return {.rows = a[0], .terms = a[1], .columns = b[0], .b_by_columns = true};
  }
  if (name == "bmm") return {.batches = a[0], .rows = a[1], .terms = a[2], .columns = b[2]};
  return {.rows = a[0], .terms = a[1], .columns = b[1]};
}

Result<Tensor> run_ordered(const OperatorCall& call, std::vector<std::int64_t> result_shape,
                           const EngineOptions& options) {
  const auto settings = ordered_settings(call);
  if (!settings) return settings.error();
  const ProductShape shape = product_shape(call);
  const Sides sides = sides_of(call, shape);
  Tensor out = zero_tensor(settings->output, std::move(result_shape));
  for (std::int64_t batch = 0; batch < shape.batches; ++batch) {
    const MatrixProblem problem{.order = settings->order,
                                .product = settings->product,
                                .input = call.inputs[0].format,
                                .accumulator = settings->accumulator,
                                .rows = shape.rows,
                                .terms = shape.terms,
                                .columns = shape.columns,
                                .a = sides.left + batch * shape.rows * shape.terms,
                                .a_stride = shape.terms,
                                .b = sides.right + batch * shape.terms * shape.columns,
                                .b_stride = shape.b_by_columns ? shape.terms : shape.columns,
                                .b_transposed = shape.b_by_columns};
    if (const auto done =
            sum_matrix(problem, out.values.data() + batch * shape.rows * shape.columns,
                       shape.columns, options);
        !done) {
      return done.error();
    }
  }
  if (const auto done = finish(call, shape, settings->accumulator, out.values); !done) {
    return done.error();
  }
  if (const auto done = round_values(settings->output, out.values, out.values, options.level);
      !done) {
    return done.error();
  }
  return out;
}

Result<Tensor> run_linear_kernel(const LinearKernel& kernel, const OperatorCall& call,
                                 std::vector<std::int64_t> result_shape,
                                 const EngineOptions& options) {
  const ProductShape shape = product_shape(call);
  const Sides sides = sides_of(call, shape);
  const double own = static_cast<double>(std::max<std::int64_t>(kernel.multiprocessors, 1));
  const auto multiprocessors = number_attribute(call, "multiprocessors", own);
  if (!multiprocessors) return multiprocessors.error();
  if (!(*multiprocessors >= 1 && *multiprocessors <= 4096)) {
    return Error{ErrorKind::usage, fmt::format("{}: attribute multiprocessors={} is not 1 … 4096",
                                               call.operation, *multiprocessors)};
  }
  LinearProblem problem;
  problem.rows = shape.rows;
  problem.outputs = shape.columns;
  problem.terms = shape.terms;
  problem.storage = call.inputs[0].format;
  problem.multiprocessors = static_cast<std::int64_t>(*multiprocessors);
  problem.x_stride = shape.terms;
  problem.w_stride = shape.b_by_columns ? shape.terms : shape.columns;
  problem.w_by_outputs = shape.b_by_columns;
  if (call.inputs.size() > 2) problem.bias = call.inputs[2].values.data();
  const auto plan = plan_linear(
      kernel, {shape.rows, shape.columns, shape.terms, problem.storage, problem.multiprocessors});
  if (!plan) return plan.error();
  const auto output = format_attribute(call, "output", plan->output);
  if (!output) return output.error();
  problem.output = *output;
  Tensor out = zero_tensor(*output, std::move(result_shape));
  for (std::int64_t batch = 0; batch < shape.batches; ++batch) {
    problem.x = sides.left + batch * shape.rows * shape.terms;
    problem.w = sides.right + batch * shape.terms * shape.columns;
    if (const auto done =
            apply_linear(kernel, problem, out.values.data() + batch * shape.rows * shape.columns,
                         shape.columns, options);
        !done) {
      return done.error();
    }
  }
  return out;
}

}  // namespace kvsim::gpu
