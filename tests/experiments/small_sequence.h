// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "run/engine.h"
#include "softfloat/formats.h"

namespace kvsim::test {

/// Two layers, two heads, three rows of one number. Its logits are sums of what it holds.
class SmallSequence : public EngineSequence {
 public:
  explicit SmallSequence(double unit, softfloat::Format format = softfloat::binary64)
      : unit_(unit), format_(format), cells_(24) {
    for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] = unit * static_cast<double>(i + 1);
  }

  Result<EnginePass> pass(std::span<const TokenId> tokens, const PlanStep& step,
                          const PassRequest& request) override {
    steps.push_back(step);
    EnginePass pass;
    double sum = tokens.back();
    for (const double cell : cells_) sum += cell;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      double hidden = sum + static_cast<double>(layer);
      for (const HiddenReplacement& each : request.replaced) {
        if (each.layer == layer) hidden = each.values.front();
      }
      pass.values.push_back({layer, "hidden", 0, step.first_row, {hidden}});
      sum = hidden;
    }
    pass.logits = {0, sum, 1};
    return pass;
  }
  StateShape state_shape() const override { return {2, 2, 1, format_}; }
  Result<std::vector<double>> state(const StateBlock& block) const override {
    std::vector<double> numbers;
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        numbers.push_back(cells_[index(block, head, row)]);
      }
    }
    return numbers;
  }
  Result<bool> set_state(const StateBlock& block, std::span<const double> numbers) override {
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t row = 0; row < block.rows; ++row) {
        cells_[index(block, head, row)] =
            numbers[static_cast<std::size_t>(head * block.rows + row)];
      }
    }
    return true;
  }
  void clear() override {}
  Result<std::unique_ptr<EngineSequence>> save() const override {
    auto copy = std::make_unique<SmallSequence>(unit_, format_);
    copy->cells_ = cells_;
    return std::unique_ptr<EngineSequence>(std::move(copy));
  }

  [[nodiscard]] const std::vector<double>& cells() const { return cells_; }
  std::vector<PlanStep> steps;

 private:
  /// [layer][part][head][row]
  static std::size_t index(const StateBlock& block, std::int64_t head, std::int64_t row) {
    const std::int64_t part = block.part == KvPart::key ? 0 : 1;
    return static_cast<std::size_t>(((block.layer * 2 + part) * 2 + head) * 3 + block.first_row +
                                    row);
  }

  double unit_;
  softfloat::Format format_;
  std::vector<double> cells_;
};

}  // namespace kvsim::test
