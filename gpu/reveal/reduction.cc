// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/reveal/reduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "gpu/reveal/positive_operator.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

enum class Layout : std::uint8_t { linear, product, batched, matrix_vector, dot, row_sums };

struct OperatorLayout {
  std::string_view name;
  Layout layout;
};
constexpr std::array layouts{
    OperatorLayout{"linear", Layout::linear},      OperatorLayout{"matmul", Layout::product},
    OperatorLayout{"gemm", Layout::product},       OperatorLayout{"bmm", Layout::batched},
    OperatorLayout{"gemv", Layout::matrix_vector}, OperatorLayout{"dot", Layout::dot},
    OperatorLayout{"sum", Layout::row_sums},       OperatorLayout{"mean", Layout::row_sums},
};

class BackendReduction final : public Reduction {
 public:
  BackendReduction(Backend& backend, ReductionShape shape, Layout layout)
      : backend_(backend), shape_(std::move(shape)), layout_(layout) {}

  std::int64_t terms() const override { return shape_.terms; }
  std::int64_t rows() const override { return shape_.rows; }
  std::int64_t columns() const override { return shape_.columns; }
  bool has_left() const override { return layout_ != Layout::row_sums; }
  bool is_mean() const override { return shape_.operation == "mean"; }
  softfloat::Format input() const override { return shape_.format; }
  softfloat::Format output() const override { return output_; }
  std::string description() const override {
    return fmt::format("{} of {}, M = {}, N = {}, K = {}, {}", shape_.operation, backend_.name(),
                       shape_.rows, shape_.columns, shape_.terms,
                       softfloat::format_name(shape_.format));
  }

 protected:
  Result<std::vector<float>> compute(std::span<const float> left,
                                     std::span<const float> right) override {
    Result<Tensor> result = backend_.run(call(left, right));
    if (!result) return result.error();
    output_ = result->format;
    const std::size_t expected = index(rows() * columns());
    if (result->values.size() < expected) {
      return Error{ErrorKind::file, fmt::format("{}: {} numbers came back in place of {}",
                                                description(), result->values.size(), expected)};
    }
    result->values.resize(expected);  // of a batch the first matrix is looked at
    return std::move(result->values);
  }

 private:
  Tensor tensor(std::vector<std::int64_t> shape, std::vector<float> values) const {
    return {.format = shape_.format, .shape = std::move(shape), .values = std::move(values)};
  }
  static std::vector<float> copied(std::span<const float> values) {
    return {values.begin(), values.end()};
  }
  /// [columns][terms] as [terms][columns].
  std::vector<float> transposed(std::span<const float> right) const {
    std::vector<float> values(right.size());
    for (std::int64_t j = 0; j < columns(); ++j) {
      for (std::int64_t k = 0; k < terms(); ++k) {
        values[index(k * columns() + j)] = right[index(j * terms() + k)];
      }
    }
    return values;
  }
  std::vector<float> repeated(const std::vector<float>& values) const {
    std::vector<float> all;
    all.reserve(values.size() * index(shape_.batch));
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  OperatorCall call(std::span<const float> left, std::span<const float> right) const {
    OperatorCall call{.operation = shape_.operation, .attributes = shape_.attributes};
    switch (layout_) {
      case Layout::linear:
        call.inputs.push_back(tensor({rows(), terms()}, copied(left)));
        call.inputs.push_back(tensor({columns(), terms()}, copied(right)));
        break;
      case Layout::product:
        call.inputs.push_back(tensor({rows(), terms()}, copied(left)));
        call.inputs.push_back(tensor({terms(), columns()}, transposed(right)));
        break;
      case Layout::batched:
        call.inputs.push_back(tensor({shape_.batch, rows(), terms()}, repeated(copied(left))));
        call.inputs.push_back(
            tensor({shape_.batch, terms(), columns()}, repeated(transposed(right))));
        break;
      case Layout::matrix_vector:
        call.inputs.push_back(tensor({columns(), terms()}, copied(right)));
        call.inputs.push_back(tensor({terms()}, copied(left)));
        call.inputs.front().misalignment = shape_.misalignment;
        return call;
      case Layout::dot:
        call.inputs.push_back(tensor({terms()}, copied(left)));
        call.inputs.push_back(tensor({terms()}, copied(right)));
        break;
      case Layout::row_sums:
        call.inputs.push_back(tensor({columns(), terms()}, copied(right)));
        break;
    }
    call.inputs.back().misalignment = shape_.misalignment;
    return call;
  }

  Backend& backend_;
  ReductionShape shape_;
  Layout layout_;
  softfloat::Format output_ = shape_.format;
};

/// The sizes that a layout does not have must be 1.
Result<bool> check_sizes(const ReductionShape& shape, Layout layout) {
  const auto check = [&](std::string_view name, std::int64_t size, bool used) -> Result<bool> {
    if (size >= 1 && (used || size == 1)) return true;
    return Error{ErrorKind::usage,
                 fmt::format("{} of {} is {}; accepted: {}", name, shape.operation, size,
                             used ? "1 or more" : "nothing but 1")};
  };
  const bool matrix =
      layout == Layout::linear || layout == Layout::product || layout == Layout::batched;
  if (auto fits = check("m", shape.rows, matrix); !fits) return fits;
  if (auto fits = check("n", shape.columns, layout != Layout::dot); !fits) return fits;
  if (auto fits = check("batch", shape.batch, layout == Layout::batched); !fits) return fits;
  return check("k", shape.terms, true);
}

}  // namespace

std::span<const std::string_view> reduction_operators() {
  static constexpr auto names = [] {
    std::array<std::string_view, layouts.size()> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = layouts[i].name;
    return all;
  }();
  return names;
}

Result<std::unique_ptr<Reduction>> make_reduction(Backend& backend, const ReductionShape& shape) {
  const auto* const found =
      std::find_if(layouts.begin(), layouts.end(),
                   [&](const OperatorLayout& row) { return row.name == shape.operation; });
  if (found == layouts.end()) {
    return Error{
        ErrorKind::usage,
        fmt::format("operator '{:.40}' is no sum of products; accepted: {}, {}", shape.operation,
                    fmt::join(reduction_operators(), ", "), fmt::join(positive_operators(), ", "))};
  }
  if (const auto fits = check_sizes(shape, found->layout); !fits) return fits.error();
  return std::unique_ptr<Reduction>(
      std::make_unique<BackendReduction>(backend, shape, found->layout));
}

}  // namespace kvsim::gpu
