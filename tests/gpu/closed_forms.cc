// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/gpu/closed_forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "gpu/operators.h"
#include "sim/engine/columns.h"
#include "sim/inputs.h"

namespace kvsim::gpu::test {
namespace {

using softfloat::Format;
using Shape = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

constexpr double u32 = 0x1p-24;

/// Half an ulp of the format, relative.
double roundoff(const Format& format) { return std::ldexp(1.0, -format.precision); }

Tensor normal_tensor(const Shape& shape, const Format& format, std::uint64_t stream,
                     double scale = 1) {
  Tensor tensor = zero_tensor(format, shape);
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    tensor.values[i] = static_cast<float>(scale * normal(6, stream, i));
  }
  EXPECT_TRUE(round_values(format, tensor.values, tensor.values));
  return tensor;
}

/// Σ terms and Σ|terms|.
struct Sum {
  double value = 0;
  double magnitude = 0;
  void add(double x) {
    value += x;
    magnitude += std::abs(x);
  }
};

/// The bound of an element, and half the distance of the format's subnormal numbers, which a
/// rounded result may be off by in place of a relative error.
void push(Case& row, double expected, double bound) {
  const Format& format = row.call.inputs[0].format;
  row.expected.push_back(expected);
  row.bound.push_back(bound + std::ldexp(1.0, format.emin() - format.precision));
}

}  // namespace

Case product_case(const std::string& operation, std::int64_t m, std::int64_t k, std::int64_t n,
                  const Format& format, bool bias) {
  const bool batched = operation == "bmm";
  const bool by_outputs = operation == "linear";
  const std::int64_t batches = batched ? 3 : 1;
  Shape a = {m, k};
  Shape b = by_outputs ? Shape{n, k} : Shape{k, n};
  if (operation == "dot") a = b = {k};
  if (operation == "gemv") b = {k};
  if (batched) {
    a.insert(a.begin(), batches);
    b.insert(b.begin(), batches);
  }
  Case row;
  row.call.operation = operation;
  row.call.inputs = {normal_tensor(a, format, 1), normal_tensor(b, format, 2)};
  if (bias) row.call.inputs.push_back(normal_tensor({n}, format, 3));
  const std::vector<float>& x = row.call.inputs[0].values;
  const std::vector<float>& w = row.call.inputs[1].values;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        Sum sum;
        for (std::int64_t l = 0; l < k; ++l) {
          const std::int64_t place = by_outputs ? j * k + l : (batch * k + l) * n + j;
          sum.add(double{x[static_cast<std::size_t>((batch * m + i) * k + l)]} *
                  double{w[static_cast<std::size_t>(place)]});
        }
        // A bias may be added to the result that was rounded to the format.
        double rounding = roundoff(format) * std::abs(sum.value);
        if (bias) {
          sum.add(row.call.inputs[2].values[static_cast<std::size_t>(j)]);
          rounding += roundoff(format) * std::abs(sum.value);
        }
        push(row, sum.value, static_cast<double>(k + 2) * u32 * sum.magnitude + 1.01 * rounding);
      }
    }
  }
  return row;
}

std::vector<Case> product_cases(const Format& format) {
  return {product_case("dot", 1, 1, 1, format),
          product_case("dot", 1, 1000, 1, format),
          product_case("gemv", 5, 33, 1, format),
          product_case("gemv", 64, 128, 1, format),
          product_case("gemm", 1, 1, 1, format),
          product_case("gemm", 7, 65, 13, format),
          product_case("gemm", 64, 96, 48, format),
          product_case("matmul", 7, 65, 13, format),
          product_case("matmul", 1, 512, 3, format),
          product_case("linear", 1, 577, 5, format),
          product_case("linear", 3, 64, 12, format),
          product_case("linear", 64, 192, 40, format),
          product_case("linear", 2, 65, 13, format, true),
          product_case("bmm", 2, 65, 13, format),
          product_case("bmm", 16, 32, 8, format)};
}

namespace {

/// A call on rows whose results `compute` gives from one row in binary64.
Case row_case(std::string operation, const Shape& shape, const Format& format,
              const std::function<void(Case&, const Numbers&)>& compute,
              std::vector<Tensor> weights = {}) {
  Case row;
  row.call.operation = std::move(operation);
  row.call.inputs = {normal_tensor(shape, format, 4)};
  for (Tensor& weight : weights) row.call.inputs.push_back(std::move(weight));
  const std::vector<float>& x = row.call.inputs[0].values;
  const auto columns = static_cast<std::ptrdiff_t>(shape.back());
  for (auto first = x.begin(); first != x.end(); first += columns) {
    compute(row, Numbers(first, first + columns));
  }
  return row;
}

Sum sum_of(const Numbers& x) {
  Sum sum;
  for (const double value : x) sum.add(value);
  return sum;
}

void softmax_row(Case& row, const Numbers& x, bool logarithm, double out) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double value : x) sum += std::exp(value - largest);
  const double steps = static_cast<double>(x.size()) + 16;
  for (const double value : x) {
    const double t = value - largest;
    if (logarithm) {
      // t is off by u|t|, the logarithm by the relative error of its argument. PyTorch rounds t and
      // the logarithm to the format, too.
      const double y = t - std::log(sum);
      push(row, y,
           4 * u32 * (std::abs(t) + std::abs(y)) + steps * u32 +
               1.01 * out * (std::abs(t) + std::abs(t - y) + std::abs(y)));
    } else {
      const double y = std::exp(t) / sum;
      push(row, y, (steps + 2 * std::abs(t)) * u32 * y + 1.01 * out * y);
    }
  }
}

/// y = (x − mean) / √(variance + eps) · weight + bias, or the same about 0.
void norm_row(Case& row, const Numbers& x, bool centred, double out) {
  const double n = static_cast<double>(x.size());
  const Sum sum = sum_of(x);
  const double mean = centred ? sum.value / n : 0;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double root = 1 / std::sqrt(squares / n + 1e-5);
  const std::vector<Tensor>& inputs = row.call.inputs;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double normal_value = (x[k] - mean) * root;
    const double weight = inputs.size() > 1 ? double{inputs[1].values[k]} : 1;
    const double bias = inputs.size() > 2 ? double{inputs[2].values[k]} : 0;
    const double y = normal_value * weight + bias;
    // The mean is off by (n + 2) u Σ|x| / n, the root by half of the squares' relative error; the
    // product may be rounded to the format before the weight enters.
    const double mean_error = centred ? (n + 2) * u32 * sum.magnitude / n * root : 0;
    const double inner =
        std::abs(weight) *
        (2 * mean_error + (n + 8) * u32 * std::abs(normal_value) + out * std::abs(normal_value));
    push(row, y, inner + 4 * u32 * std::abs(bias) + 1.01 * out * std::abs(y));
  }
}

}  // namespace

std::vector<Case> row_cases(const Format& format) {
  const double out = roundoff(format);
  std::vector<Case> cases;
  for (const Shape& shape : {Shape{1}, Shape{3, 100}, Shape{2, 2, 37}, Shape{2, 1025}}) {
    const auto n = static_cast<double>(shape.back());
    cases.push_back(row_case("sum", shape, format, [&](Case& row, const Numbers& x) {
      const Sum sum = sum_of(x);
      push(row, sum.value, n * u32 * sum.magnitude + 1.01 * out * std::abs(sum.value));
    }));
    cases.push_back(row_case("mean", shape, format, [&](Case& row, const Numbers& x) {
      const Sum sum = sum_of(x);
      push(row, sum.value / n,
           (n + 1) * u32 * sum.magnitude / n + 1.01 * out * std::abs(sum.value / n));
    }));
    for (const bool logarithm : {false, true}) {
      cases.push_back(
          row_case(logarithm ? "log-softmax" : "softmax", shape, format,
                   [&](Case& row, const Numbers& x) { softmax_row(row, x, logarithm, out); }));
    }
    const Tensor weight = normal_tensor({shape.back()}, format, 5);
    const Tensor bias = normal_tensor({shape.back()}, format, 6);
    const std::pair<bool, std::vector<Tensor>> norms[] = {
        {false, {}}, {false, {weight}}, {true, {}}, {true, {weight}}, {true, {weight, bias}}};
    for (const auto& [centred, weights] : norms) {
      if (centred && shape.back() == 1) continue;  // 0 ÷ √eps: nothing but cancellation
      cases.push_back(row_case(
          centred ? "layer-norm" : "rms-norm", shape, format,
          [&](Case& row, const Numbers& x) { norm_row(row, x, centred, out); }, weights));
      cases.back().call.attributes["eps"] = "1e-5";
    }
  }
  return cases;
}

std::vector<Case> element_cases(const Format& format) {
  const double out = roundoff(format);
  // A function, and its condition: how a relative error of 1 of the argument of its inner function
  // shows in the result.
  struct Function {
    const char* name;
    double (*value)(double);
    double (*condition)(double);
  };
  const Function functions[] = {
      {"silu", [](double x) { return x / (1 + std::exp(-x)); },
       [](double x) { return std::abs(x) * (1 + std::abs(x)); }},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))); },
       [](double x) { return std::abs(x); }},
      {"gelu-tanh",
       [](double x) {
         constexpr double root = 0.79788456080286535588;  // √(2/π)
         return 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
       },
       [](double x) { return std::abs(x); }},
      {"exp", [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); },
       [](double x) { return 1 / std::sqrt(x); }},
  };
  // rsqrt: PyTorch rounds the root of the last elements to the format before it divides.
  std::vector<Case> cases;
  for (const Function& function : functions) {
    Case row;
    row.call.operation = function.name;
    row.call.inputs = {normal_tensor({5, 67}, format, 7, 2)};
    for (float& x : row.call.inputs[0].values) {
      if (row.call.operation == "rsqrt") x = std::abs(x);
      const double roundings = row.call.operation == "rsqrt" ? 2 : 1;
      push(row, function.value(x),
           8 * u32 * function.condition(x) + 1.01 * roundings * out * std::abs(function.value(x)));
    }
    cases.push_back(std::move(row));
  }
  for (const char* const name : {"add", "mul"}) {
    Case row;
    row.call.operation = name;
    row.call.inputs = {normal_tensor({5, 67}, format, 8), normal_tensor({5, 67}, format, 9)};
    for (std::size_t i = 0; i < row.call.inputs[0].values.size(); ++i) {
      const double x = row.call.inputs[0].values[i];
      const double y = row.call.inputs[1].values[i];
      const double z = row.call.operation == "add" ? x + y : x * y;
      push(row, z, 1.01 * out * std::abs(z));
    }
    cases.push_back(std::move(row));
  }
  return cases;
}

namespace {

Case attention_case(const Format& format, std::int64_t queries, std::int64_t keys, bool causal) {
  constexpr std::int64_t heads = 4;
  constexpr std::int64_t kv_heads = 2;
  constexpr std::int64_t channels = 16;
  const double scale = 0.25;
  const double out = roundoff(format);
  Case row;
  row.call.operation = "sdpa";
  row.call.attributes["causal"] = causal ? "1" : "0";
  row.call.inputs = {normal_tensor({heads, queries, channels}, format, 10),
                     normal_tensor({kv_heads, keys, channels}, format, 11),
                     normal_tensor({kv_heads, keys, channels}, format, 12)};
  const std::vector<float>& q = row.call.inputs[0].values;
  const std::vector<float>& k = row.call.inputs[1].values;
  const std::vector<float>& v = row.call.inputs[2].values;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t kv_head = head / (heads / kv_heads);
    for (std::int64_t query = 0; query < queries; ++query) {
      const std::int64_t seen = causal ? keys - queries + query + 1 : keys;
      Numbers p;
      double largest_score_error = 0;
      for (std::int64_t key = 0; key < seen; ++key) {
        Sum score;
        for (std::int64_t c = 0; c < channels; ++c) {
          score.add(scale * q[at((head * queries + query) * channels + c)] *
                    k[at((kv_head * keys + key) * channels + c)]);
        }
        // Scores may be rounded to the format before and after the scale.
        const double rounding = out > u32 ? 2 * out * std::abs(score.value) : 0;
        largest_score_error =
            std::max(largest_score_error, (channels + 4) * u32 * score.magnitude + rounding);
        p.push_back(score.value);
      }
      const double largest = *std::max_element(p.begin(), p.end());
      double sum = 0;
      for (double& score : p) sum += score = std::exp(score - largest);
      for (std::int64_t c = 0; c < channels; ++c) {
        Sum y;
        for (std::int64_t key = 0; key < seen; ++key) {
          y.add(p[at(key)] / sum * v[at((kv_head * keys + key) * channels + c)]);
        }
        // Probabilities may be rounded to the format, and so may the row's sum.
        const double relative =
            2 * largest_score_error + 2 * out + static_cast<double>(2 * seen + 24) * u32;
        push(row, y.value, 1.1 * relative * y.magnitude + 1.01 * out * std::abs(y.value));
      }
    }
  }
  return row;
}

}  // namespace

std::vector<Case> attention_cases(const Format& format) {
  return {attention_case(format, 1, 1, false), attention_case(format, 1, 70, false),
          attention_case(format, 9, 70, false), attention_case(format, 40, 40, true),
          attention_case(format, 3, 3, true)};
}

void expect_near(const Case& expected, const Tensor& result) {
  const OperatorCall& call = expected.call;
  std::string what = call.operation;
  for (const Tensor& input : call.inputs) what += " " + shape_text(input.shape);
  for (const auto& [name, value] : call.attributes) what += " " + name + "=" + value;
  what += " in " + std::string(softfloat::format_name(call.inputs[0].format));
  EXPECT_EQ(result.format, call.inputs[0].format) << what;
  ASSERT_EQ(result.values.size(), expected.expected.size()) << what;
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    // Written so that a NaN fails.
    if (std::abs(result.values[i] - expected.expected[i]) <= expected.bound[i]) continue;
    ADD_FAILURE() << what << ", element " << i << ": " << result.values[i] << ", expected "
                  << expected.expected[i] << " ± " << expected.bound[i];
    return;
  }
}

}  // namespace kvsim::gpu::test
