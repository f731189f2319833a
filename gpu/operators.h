// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/backend.h"
#include "softfloat/format.h"
#include "softfloat/result.h"

/// The operators that back ends offer, and the checks that all of them share.
namespace kvsim::gpu {

inline constexpr std::int64_t max_tensor_elements = std::int64_t{1} << 31;

/// One operator.
struct OperatorRow {
  std::string_view name;
  std::string_view inputs;  ///< for the user: "x [M][K], w [N][K], optional bias [N]"
  std::string_view result;  ///< "[M][N]"
  std::size_t least_inputs = 1;
  std::size_t most_inputs = 1;
  /// The result's shape, or what is wrong with the inputs; the number of inputs fits.
  Result<std::vector<std::int64_t>> (*shape)(std::span<const Tensor> inputs);
};

/// Every operator: linear, matmul, gemm, bmm, dot, gemv, sum, mean, softmax, log-softmax, rms-norm,
/// layer-norm, sdpa, silu, gelu, gelu-tanh, exp, rsqrt, add, mul.
[[nodiscard]] std::span<const OperatorRow> operator_rows();

/// The row with this name; nullptr if there is none.
[[nodiscard]] const OperatorRow* find_operator(std::string_view name);

/// The number of elements of a shape. Errors (usage): a size below 1, more than
/// max_tensor_elements.
[[nodiscard]] Result<std::int64_t> element_count(std::span<const std::int64_t> shape);

/// "[64][576]"; "[]" for one number.
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

/// Whether every value of the tensor is a number of its format; the error names the first that is
/// not.
[[nodiscard]] Result<bool> check_numbers(const Tensor& tensor);

/// Checks a call against the operator's row and what a back end offers, and gives the result's
/// shape. Errors: (unavailable) an operator or a format that `offered` lacks, said with the names
/// it has; (usage) a number of inputs or shape that does not fit, values that are not as many as
/// the shape says or not numbers of the format, inputs of different formats, a misalignment that is
/// no multiple of an element's size below 64, an attribute that `attributes` does not list.
[[nodiscard]] Result<std::vector<std::int64_t>> check_call(
    std::string_view backend, const OperatorCall& call, std::span<const OperatorSupport> offered,
    std::span<const std::string_view> attributes);

/// The attribute as a number, or `otherwise` where the call has none. Errors (usage): no number.
[[nodiscard]] Result<double> number_attribute(const OperatorCall& call, std::string_view name,
                                              double otherwise);

/// The attribute as 0 or 1, or `otherwise`. Errors (usage): anything else.
[[nodiscard]] Result<bool> flag_attribute(const OperatorCall& call, std::string_view name,
                                          bool otherwise);

/// The attribute's text, or `otherwise`.
[[nodiscard]] std::string text_attribute(const OperatorCall& call, std::string_view name,
                                         std::string_view otherwise);

/// A tensor of this format and shape with +0 everywhere; the shape fits.
[[nodiscard]] Tensor zero_tensor(const softfloat::Format& format, std::vector<std::int64_t> shape);

}  // namespace kvsim::gpu
