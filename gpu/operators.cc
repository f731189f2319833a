// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>

#include "sim/engine/columns.h"
#include "softfloat/formats.h"
#include "softfloat/suggest.h"

namespace kvsim::gpu {
namespace {

using Shape = std::vector<std::int64_t>;

Error usage(std::string message) { return Error{ErrorKind::usage, std::move(message)}; }

/// Says which input has the wrong number of dimensions.
Result<bool> check_ranks(std::span<const Tensor> inputs, std::initializer_list<std::size_t> ranks) {
  std::size_t i = 0;
  for (const std::size_t rank : ranks) {
    if (i == inputs.size()) break;
    if (inputs[i].shape.size() != rank) {
      return usage(fmt::format("input {} has shape {}, which needs {} dimension{}", i + 1,
                               shape_text(inputs[i].shape), rank, rank == 1 ? "" : "s"));
    }
    ++i;
  }
  return true;
}

/// Says that two sizes which must be one are not.
Error unequal(std::string_view what, std::span<const Tensor> inputs, std::size_t i, std::size_t j) {
  return usage(fmt::format("{} of input {} {} and input {} {} differ", what, i + 1,
                           shape_text(inputs[i].shape), j + 1, shape_text(inputs[j].shape)));
}

Result<Shape> linear_shape(std::span<const Tensor> inputs) {
  if (const auto ranks = check_ranks(inputs, {2, 2, 1}); !ranks) return ranks.error();
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  if (x[1] != w[1]) return unequal("the terms", inputs, 0, 1);
  if (inputs.size() > 2 && inputs[2].shape[0] != w[0]) return unequal("the outputs", inputs, 1, 2);
  return Shape{x[0], w[0]};
}

Result<Shape> matrix_shape(std::span<const Tensor> inputs) {
  if (const auto ranks = check_ranks(inputs, {2, 2}); !ranks) return ranks.error();
  if (inputs[0].shape[1] != inputs[1].shape[0]) return unequal("the terms", inputs, 0, 1);
  return Shape{inputs[0].shape[0], inputs[1].shape[1]};
}

Result<Shape> batched_shape(std::span<const Tensor> inputs) {
  if (const auto ranks = check_ranks(inputs, {3, 3}); !ranks) return ranks.error();
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (a[0] != b[0]) return unequal("the batches", inputs, 0, 1);
  if (a[2] != b[1]) return unequal("the terms", inputs, 0, 1);
  return Shape{a[0], a[1], b[2]};
}

Result<Shape> dot_shape(std::span<const Tensor> inputs) {
  if (const auto ranks = check_ranks(inputs, {1, 1}); !ranks) return ranks.error();
  if (inputs[0].shape != inputs[1].shape) return unequal("the terms", inputs, 0, 1);
  return Shape{};
}

Result<Shape> matrix_vector_shape(std::span<const Tensor> inputs) {
  if (const auto ranks = check_ranks(inputs, {2, 1}); !ranks) return ranks.error();
  if (inputs[0].shape[1] != inputs[1].shape[0]) return unequal("the terms", inputs, 0, 1);
  return Shape{inputs[0].shape[0]};
}

Result<Shape> reduced_shape(std::span<const Tensor> inputs) {
  Shape shape = inputs[0].shape;
  if (shape.empty()) return usage("input 1 has shape [], which needs 1 dimension or more");
  shape.pop_back();
  return shape;
}

Result<Shape> row_shape(std::span<const Tensor> inputs) {
  const Shape& x = inputs[0].shape;
  if (x.empty()) return usage("input 1 has shape [], which needs 1 dimension or more");
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape != Shape{x.back()}) return unequal("the last dimensions", inputs, 0, i);
  }
  return x;
}

Result<Shape> attention_shape(std::span<const Tensor> inputs) {
  if (const auto ranks = check_ranks(inputs, {3, 3, 3}); !ranks) return ranks.error();
  const Shape& q = inputs[0].shape;
  const Shape& k = inputs[1].shape;
  if (inputs[2].shape != k) return unequal("the shapes", inputs, 1, 2);
  if (q[2] != k[2]) return unequal("the head dimensions", inputs, 0, 1);
  if (q[0] % k[0] != 0) {
    return usage(fmt::format("{} query heads are no multiple of {} K/V heads", q[0], k[0]));
  }
  return q;
}

Result<Shape> equal_shape(std::span<const Tensor> inputs) {
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape != inputs[0].shape) return unequal("the shapes", inputs, 0, i);
  }
  return inputs[0].shape;
}

constexpr std::string_view vector_text = "x […][K]";

constexpr OperatorRow rows[] = {
    {"linear", "x [M][K], w [N][K], optional bias [N]", "[M][N]", 2, 3, linear_shape},
    {"matmul", "a [M][K], b [K][N]", "[M][N]", 2, 2, matrix_shape},
    {"gemm", "a [M][K], b [K][N]", "[M][N]", 2, 2, matrix_shape},
    {"bmm", "a [B][M][K], b [B][K][N]", "[B][M][N]", 2, 2, batched_shape},
    {"dot", "a [K], b [K]", "[]", 2, 2, dot_shape},
    {"gemv", "a [M][K], x [K]", "[M]", 2, 2, matrix_vector_shape},
    {"sum", vector_text, "[…]", 1, 1, reduced_shape},
    {"mean", vector_text, "[…]", 1, 1, reduced_shape},
    {"softmax", vector_text, "[…][K]", 1, 1, row_shape},
    {"log-softmax", vector_text, "[…][K]", 1, 1, row_shape},
    {"rms-norm", "x […][K], optional weight [K]", "[…][K]", 1, 2, row_shape},
    {"layer-norm", "x […][K], optional weight [K], optional bias [K]", "[…][K]", 1, 3, row_shape},
    {"sdpa", "q [H][Q][d], k [Hkv][L][d], v [Hkv][L][d]", "[H][Q][d]", 3, 3, attention_shape},
    {"silu", "x […]", "[…]", 1, 1, equal_shape},
    {"gelu", "x […]", "[…]", 1, 1, equal_shape},
    {"gelu-tanh", "x […]", "[…]", 1, 1, equal_shape},
    {"exp", "x […]", "[…]", 1, 1, equal_shape},
    {"rsqrt", "x […]", "[…]", 1, 1, equal_shape},
    {"add", "x […], y […]", "[…]", 2, 2, equal_shape},
    {"mul", "x […], y […]", "[…]", 2, 2, equal_shape},
};

/// Whether the tensor is what its fields say; `i` counts from 1.
Result<bool> check_tensor(const Tensor& tensor, std::size_t i) {
  const auto count = element_count(tensor.shape);
  if (!count) return usage(fmt::format("input {}: {}", i, count.error().message));
  if (static_cast<std::int64_t>(tensor.values.size()) != *count) {
    return usage(fmt::format("input {} has {} numbers, and shape {} needs {}", i,
                             tensor.values.size(), shape_text(tensor.shape), *count));
  }
  const std::int64_t bytes = (tensor.format.width() + 7) / 8;
  if (tensor.misalignment < 0 || tensor.misalignment > 63 || tensor.misalignment % bytes != 0) {
    return usage(fmt::format("input {}: misalignment {} is no multiple of {} bytes from 0 to 63", i,
                             tensor.misalignment, bytes));
  }
  if (const auto good = check_numbers(tensor); !good) {
    return usage(fmt::format("input {}: {}", i, good.error().message));
  }
  return true;
}

Result<bool> check_attributes(const OperatorCall& call,
                              std::span<const std::string_view> attributes) {
  for (const auto& [name, value] : call.attributes) {
    if (std::find(attributes.begin(), attributes.end(), name) != attributes.end()) continue;
    return usage(
        fmt::format("{} takes no attribute '{:.40}' here; accepted: {}", call.operation, name,
                    attributes.empty() ? "none" : fmt::to_string(fmt::join(attributes, ", "))));
  }
  return true;
}

/// Whether `offered` has the operator in the format of the first input.
Result<bool> check_offer(std::string_view backend, const OperatorCall& call,
                         std::span<const OperatorSupport> offered) {
  const auto support =
      std::find_if(offered.begin(), offered.end(),
                   [&](const OperatorSupport& row) { return row.operation == call.operation; });
  if (support == offered.end()) {
    std::vector<std::string_view> names;
    names.reserve(offered.size());
    for (const OperatorSupport& row : offered) names.emplace_back(row.operation);
    return Error{ErrorKind::unavailable, fmt::format("{} does not offer {}; it has {}", backend,
                                                     call.operation, fmt::join(names, ", "))};
  }
  const std::string_view format = softfloat::format_name(call.inputs[0].format);
  if (std::find(support->formats.begin(), support->formats.end(), format) ==
      support->formats.end()) {
    return Error{ErrorKind::unavailable,
                 fmt::format("{} does not offer {} in {}; it has {}", backend, call.operation,
                             format, fmt::join(support->formats, ", "))};
  }
  return true;
}

}  // namespace

std::span<const OperatorRow> operator_rows() { return rows; }

const OperatorRow* find_operator(std::string_view name) {
  const auto* const found = std::find_if(std::begin(rows), std::end(rows),
                                         [&](const OperatorRow& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

Result<std::int64_t> element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 1) {
      return usage(fmt::format("shape {} has a size below 1", shape_text(shape)));
    }
    if (size > max_tensor_elements / count) {
      return usage(
          fmt::format("shape {} has more than {} numbers", shape_text(shape), max_tensor_elements));
    }
    count *= size;
  }
  return count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  if (shape.empty()) return "[]";
  std::string text;
  for (const std::int64_t size : shape) fmt::format_to(std::back_inserter(text), "[{}]", size);
  return text;
}

Result<bool> check_numbers(const Tensor& tensor) {
  if (tensor.format == softfloat::binary32) return true;
  std::vector<float> rounded(tensor.values.size());
  if (const auto done = round_values(tensor.format, tensor.values, rounded); !done) {
    return done.error();
  }
  for (std::size_t k = 0; k < rounded.size(); ++k) {
    const float value = tensor.values[k];
    if (rounded[k] != value && !(std::isnan(value) && std::isnan(rounded[k]))) {
      return usage(fmt::format("{} at {} is no number of {}", value, k,
                               softfloat::format_name(tensor.format)));
    }
  }
  return true;
}

Result<std::vector<std::int64_t>> check_call(std::string_view backend, const OperatorCall& call,
                                             std::span<const OperatorSupport> offered,
                                             std::span<const std::string_view> attributes) {
  const OperatorRow* const row = find_operator(call.operation);
  if (row == nullptr) {
    std::vector<std::string_view> names;
    names.reserve(std::size(rows));
    for (const OperatorRow& known : rows) names.push_back(known.name);
    const std::string_view near = softfloat::nearest(call.operation, names);
    return usage(fmt::format("no operator is called '{:.40}'{}; there are {}", call.operation,
                             near.empty() ? "" : fmt::format(": did you mean '{}'?", near),
                             fmt::join(names, ", ")));
  }
  if (call.inputs.size() < row->least_inputs || call.inputs.size() > row->most_inputs) {
    return usage(
        fmt::format("{} got {} inputs, and takes {}", row->name, call.inputs.size(), row->inputs));
  }
  if (const auto offer = check_offer(backend, call, offered); !offer) return offer.error();
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& tensor = call.inputs[i];
    if (tensor.format != call.inputs[0].format) {
      return usage(fmt::format("{}: input {} is in {}, and input 1 in {}", row->name, i + 1,
                               softfloat::format_name(tensor.format),
                               softfloat::format_name(call.inputs[0].format)));
    }
    if (const auto good = check_tensor(tensor, i + 1); !good) {
      return usage(fmt::format("{}: {}", row->name, good.error().message));
    }
  }
  if (const auto known = check_attributes(call, attributes); !known) return known.error();
  auto shape = row->shape(call.inputs);
  if (!shape) return usage(fmt::format("{}: {}", row->name, shape.error().message));
  if (const auto count = element_count(*shape); !count) {
    return usage(fmt::format("{}: the result: {}", row->name, count.error().message));
  }
  return shape;
}

Result<double> number_attribute(const OperatorCall& call, std::string_view name, double otherwise) {
  const auto found = call.attributes.find(std::string(name));
  if (found == call.attributes.end()) return otherwise;
  const std::string& text = found->second;
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    return usage(fmt::format("{}: attribute {}={:.40} is no number", call.operation, name, text));
  }
  return value;
}

Result<bool> flag_attribute(const OperatorCall& call, std::string_view name, bool otherwise) {
  const std::string text = text_attribute(call, name, otherwise ? "1" : "0");
  if (text == "0" || text == "1") return text == "1";
  return usage(
      fmt::format("{}: attribute {}={:.40} is neither 0 nor 1", call.operation, name, text));
}

std::string text_attribute(const OperatorCall& call, std::string_view name,
                           std::string_view otherwise) {
  const auto found = call.attributes.find(std::string(name));
  return found == call.attributes.end() ? std::string(otherwise) : found->second;
}

Tensor zero_tensor(const softfloat::Format& format, std::vector<std::int64_t> shape) {
  Tensor tensor{.format = format, .shape = std::move(shape)};
  std::size_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
  tensor.values.assign(count, 0.0F);
  return tensor;
}

}  // namespace kvsim::gpu
