// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "gpu/crosscheck/revealed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/crosscheck/observed.h"
#include "gpu/operators.h"
#include "gpu/reveal/positive_reveal.h"
#include "gpu/reveal/reduction.h"
#include "gpu/reveal/sum_classes.h"
#include "gpu/reveal/sum_model.h"
#include "sim/order.h"
#include "softfloat/formats.h"
#include "softfloat/index.h"

namespace kvsim::gpu {
namespace {

/// The operator of a check as observe() runs it, norms step by step, under its own name.
class ObservedOperator final : public Backend {
 public:
  ObservedOperator(Backend& backend, const Check& check) : backend_(backend), check_(check) {}

  [[nodiscard]] std::string name() const override { return backend_.name(); }
  [[nodiscard]] Fingerprint fingerprint() const override { return backend_.fingerprint(); }
  [[nodiscard]] std::vector<OperatorSupport> operators() const override {
    return backend_.operators();
  }
  [[nodiscard]] Result<Tensor> run(const OperatorCall& call) override {
    Check check = check_;
    if (check.operation == "rms-norm") {
      const auto epsilon = number_attribute(call, "eps", check.epsilon);
      if (!epsilon) return epsilon.error();
      check.epsilon = *epsilon;
      check.has_weight = call.inputs.size() > 1;
      if (check.has_weight && !check_.has_weight) {
        return Error{ErrorKind::usage, "this norm has no weight"};
      }
    }
    return observe(backend_, check, call.inputs);
  }
  [[nodiscard]] Result<bool> set_threads(std::int64_t n) override {
    return backend_.set_threads(n);
  }

 private:
  Backend& backend_;
  const Check& check_;
};

/// A linear layer, a sum or a mean as a sum of products.
ReductionShape reduction_shape(const Check& check) {
  if (check.operation == "linear") {
    return {.operation = "linear",
            .format = check.format,
            .rows = check.rows,
            .columns = check.outputs,
            .terms = check.terms};
  }
  return {.operation = check.operation,
          .format = check.format,
          .columns = check.rows,
          .terms = check.terms};
}

/// All that tells checks of one operator apart.
std::string key_of(const Check& check) {
  return fmt::format("{} {} {} {} {} {} {}", check.operation, softfloat::format_name(check.format),
                     check.rows, check.outputs, check.terms, check.plus_one, check.has_weight);
}

Error not_explained(const Check& check) {
  return {
      ErrorKind::cannot_tell,
      fmt::format("{}: no order explains what was seen; kvsim reveal says more", size_text(check))};
}

std::string more(std::size_t classes) {
  return classes > 1 ? fmt::format(" and {} more", classes - 1) : std::string();
}

/// What was revealed of one operator.
class Revealed {
 public:
  Revealed() = default;
  Revealed(const Revealed&) = delete;
  Revealed& operator=(const Revealed&) = delete;
  virtual ~Revealed() = default;

  [[nodiscard]] virtual std::string text() const = 0;
  [[nodiscard]] virtual Result<Tensor> run(const Check& check,
                                           const std::vector<Tensor>& inputs) const = 0;
};

class RevealedProducts final : public Revealed {
 public:
  /// Errors (cannot_tell): a class of sums without a model.
  static Result<std::unique_ptr<Revealed>> make(Backend& backend, const Check& check,
                                                const RevealOptions& options) {
    auto reduction = make_reduction(backend, reduction_shape(check));
    if (!reduction) return reduction.error();
    auto found = reveal(**reduction, options);
    if (!found) return found.error();
    auto made = std::make_unique<RevealedProducts>();
    for (RevealedSums& sums : found->classes) {
      if (!sums.explained || !sums.model) return not_explained(check);
      made->parts_.push_back({std::move(*sums.model), std::move(sums.where)});
    }
    return Result<std::unique_ptr<Revealed>>(std::move(made));
  }

  [[nodiscard]] std::string text() const override {
    const std::optional<Order>& order = parts_.front().model.order;
    return (order ? to_string(*order) : "the tree itself") + more(parts_.size());
  }

  [[nodiscard]] Result<Tensor> run(const Check& check,
                                   const std::vector<Tensor>& inputs) const override {
    const bool is_linear = check.operation == "linear";
    Tensor out =
        zero_tensor(parts_.front().model.output,
                    is_linear ? std::vector{check.rows, check.outputs} : std::vector{check.rows});
    const std::vector<float> ones(index(check.terms), 1.0F);
    const std::span<const float> left = is_linear ? std::span(inputs[0].values) : std::span(ones);
    const std::span<const float> right = inputs[is_linear ? 1 : 0].values;
    const std::int64_t columns = is_linear ? check.outputs : check.rows;
    for (const Part& sums : parts_) {
      const auto part = replay(sums.model, check.terms, left, right, &sums.where);
      if (!part) return part.error();
      for (const std::int64_t i : sums.where.rows) {
        for (const std::int64_t j : sums.where.columns) {
          out.values[index(i * columns + j)] = (*part)[index(i * columns + j)];
        }
      }
    }
    return out;
  }

 private:
  struct Part {
    SumModel model;
    SumClass where;
  };
  std::vector<Part> parts_;
};

class RevealedRowSums final : public Revealed {
 public:
  /// Errors (cannot_tell): rows without a model.
  static Result<std::unique_ptr<Revealed>> make(Backend& backend, const Check& check,
                                                const RevealOptions& options) {
    ObservedOperator observed(backend, check);
    auto of =
        PositiveOperator::make(observed, {.operation = check.operation,
                                          .format = check.format,
                                          .columns = check.rows,
                                          .terms = check.terms,
                                          .attributes = {{"eps", fmt::to_string(check.epsilon)}}});
    if (!of) return of.error();
    auto found = reveal_positive(*of, options);
    if (!found) return found.error();
    auto made = std::make_unique<RevealedRowSums>();
    for (RevealedRows& rows : found->classes) {
      if (!rows.explained || !rows.model) return not_explained(check);
      made->parts_.push_back({std::move(*rows.model), std::move(rows.rows)});
    }
    return Result<std::unique_ptr<Revealed>>(std::move(made));
  }

  [[nodiscard]] std::string text() const override {
    const PositiveModel& model = parts_.front().model;
    std::string text = to_string(model.order);
    if (model.kind != PositiveKind::rms_norm) text += ", " + to_string(model.exp);
    return text + more(parts_.size());
  }

  [[nodiscard]] Result<Tensor> run(const Check& check,
                                   const std::vector<Tensor>& inputs) const override {
    Tensor out = zero_tensor(parts_.front().model.output, inputs[0].shape);
    PositiveOperator::Call call{.x = inputs[0].values};
    if (check.operation == "rms-norm") call.epsilon = static_cast<float>(check.epsilon);
    if (inputs.size() > 1) call.weight = inputs[1].values;
    for (const Part& rows : parts_) {
      const auto part = replay(rows.model, check.terms, call);
      if (!part) return part.error();
      for (const std::int64_t row : rows.rows) {
        std::copy_n(part->begin() + row * check.terms, check.terms,
                    out.values.begin() + row * check.terms);
      }
    }
    return out;
  }

 private:
  struct Part {
    PositiveModel model;
    std::vector<std::int64_t> rows;
  };
  std::vector<Part> parts_;
};

class RevealedSimulation final : public Simulation {
 public:
  RevealedSimulation(Backend& backend, const RevealOptions& options)
      : backend_(backend), options_(options) {}

  [[nodiscard]] Result<std::string> kernel(const Check& check) override {
    const auto found = find(check);
    if (!found) return found.error();
    return (*found)->text();
  }

  [[nodiscard]] Result<Tensor> run(const Check& check, const std::vector<Tensor>& inputs) override {
    const auto found = find(check);
    if (!found) return found.error();
    return (*found)->run(check, inputs);
  }

 private:
  [[nodiscard]] Result<const Revealed*> find(const Check& check) {
    const bool products =
        check.operation == "linear" || check.operation == "sum" || check.operation == "mean";
    const bool row_sums = check.operation == "softmax" || check.operation == "rms-norm";
    if (!products && !row_sums) {
      return Error{ErrorKind::unavailable, fmt::format("{} is not revealed yet", check.operation)};
    }
    const std::string key = key_of(check);
    auto known = revealed_.find(key);
    if (known == revealed_.end()) {
      auto made = products ? RevealedProducts::make(backend_, check, options_)
                           : RevealedRowSums::make(backend_, check, options_);
      if (!made) return made.error();
      known = revealed_.emplace(key, std::move(*made)).first;
    }
    return static_cast<const Revealed*>(known->second.get());
  }

  Backend& backend_;
  RevealOptions options_;
  std::map<std::string, std::unique_ptr<Revealed>> revealed_;
};

}  // namespace

std::unique_ptr<Simulation> revealed_simulation(Backend& backend, const RevealOptions& options) {
  return std::make_unique<RevealedSimulation>(backend, options);
}

}  // namespace kvsim::gpu
