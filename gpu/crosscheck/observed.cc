// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/observed.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "gpu/operators.h"
#include "sim/engine/columns.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

using softfloat::binary32;
using softfloat::Format;

Result<Tensor> rounded(const Tensor& tensor, const Format& format) {
  Tensor out = zero_tensor(format, tensor.shape);
  const auto done = round_values(format, tensor.values, out.values);
  if (!done) return done.error();
  return out;
}

Tensor filled(std::vector<std::int64_t> shape, float value) {
  Tensor out = zero_tensor(binary32, std::move(shape));
  out.values.assign(out.values.size(), value);
  return out;
}

/// Each number of a vector for a whole row, or the vector as every row.
Tensor spread(const Tensor& vector, const Check& check, bool over_rows) {
  Tensor out = zero_tensor(vector.format, {check.rows, check.terms});
  const auto terms = static_cast<std::size_t>(check.terms);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = vector.values[over_rows ? i % terms : i / terms];
  }
  return out;
}

/// Operators of the back end, one after another; the first error stays.
class Steps {
 public:
  explicit Steps(Backend& backend) : backend_(backend) {}
  Tensor run(std::string_view operation, std::vector<Tensor> inputs) {
    if (!failed_) return {};
    OperatorCall call;
    call.operation = operation;
    call.inputs = std::move(inputs);
    return take(backend_.run(call));
  }
  Tensor take(Result<Tensor> result) {
    if (result) return std::move(*result);
    if (failed_) failed_ = result.error();
    return {};
  }
  [[nodiscard]] Result<Tensor> finish(Tensor last) const {
    if (!failed_) return failed_.error();
    return last;
  }

 private:
  Backend& backend_;
  Result<bool> failed_ = true;
};

Result<Tensor> norm(Backend& backend, const Check& check, const std::vector<Tensor>& inputs) {
  Steps steps(backend);
  const Tensor x = steps.take(rounded(inputs[0], binary32));
  const Tensor mean = steps.run("mean", {steps.run("mul", {x, x})});
  const Tensor epsilon = filled({check.rows}, static_cast<float>(check.epsilon));
  const Tensor root = steps.run("rsqrt", {steps.run("add", {mean, epsilon})});
  if (const auto good = steps.finish({}); !good) return good.error();
  Tensor normed = steps.run("mul", {x, spread(root, check, false)});
  if (const auto good = steps.finish({}); !good) return good.error();
  if (!check.has_weight) return rounded(normed, check.format);
  const Tensor weight = spread(inputs[1], check, true);
  if (!check.plus_one) {
    return steps.finish(steps.run("mul", {weight, steps.take(rounded(normed, check.format))}));
  }
  const Tensor one_more =
      steps.run("add", {filled(weight.shape, 1), steps.take(rounded(weight, binary32))});
  normed = steps.run("mul", {std::move(normed), one_more});
  if (const auto good = steps.finish({}); !good) return good.error();
  return rounded(normed, check.format);
}

}  // namespace

Result<Tensor> observe(Backend& backend, const Check& check, const std::vector<Tensor>& inputs) {
  if (check.operation == "rms-norm") return norm(backend, check, inputs);
  OperatorCall call{check.operation, inputs, {}};
  if (check.operation == "residual") call.operation = "add";
  if (check.operation == "product") call.operation = "mul";
  if (check.operation == "softmax" && check.format != binary32) {
    call.attributes["output"] = "binary32";
  }
  if (check.is_attention()) {
    call.operation = "sdpa";
    if (check.operation == "eager") call.attributes["backend"] = "eager";
    if (check.queries > 1) call.attributes["causal"] = "1";
  }
  return backend.run(call);
}

}  // namespace kvsim::gpu
