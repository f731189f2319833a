// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/engine/program.h"

#include <algorithm>
#include <utility>

#include "sim/order_walk.h"

namespace kvsim::engine {
namespace {

/// Operations for walk() that write the calls down instead of computing.
class Recorder {
 public:
  using Value = std::int32_t;  ///< a slot

  Value zero() {
    const Value slot = allocate();
    program_.steps.push_back({.kind = StepKind::zero, .slot = slot});
    return slot;
  }

  Value first(std::int64_t term) {
    const Value slot = allocate();
    program_.steps.push_back({.kind = StepKind::start, .slot = slot, .first = term, .count = 1});
    ++program_.roundings;
    return slot;
  }

  Value add_term(Value slot, std::int64_t term) {
    program_.roundings += 2;
    if (!program_.steps.empty() && extend(program_.steps.back(), slot, term)) return slot;
    program_.steps.push_back({.kind = StepKind::terms, .slot = slot, .first = term, .count = 1});
    return slot;
  }

  Value add(Value left, Value right) {
    program_.steps.push_back({.kind = StepKind::join, .slot = left, .other = right});
    ++program_.roundings;
    free_.push_back(right);
    return left;
  }

  Value exact(const OrderRange& range, bool from_zero) {
    const Value slot = allocate();
    program_.steps.push_back({.kind = StepKind::exact,
                              .slot = slot,
                              .other = from_zero ? 1 : 0,
                              .first = static_cast<std::int64_t>(program_.positions.size()),
                              .count = range.count});
    for (std::int64_t k = 0; k < range.count; ++k) program_.positions.push_back(range.at(k));
    ++program_.roundings;
    return slot;
  }

  Value unit(const OrderRange& range, const OrderItem& item) {
    program_.unit = item.unit;
    const Value slot = allocate();
    Step step{.kind = StepKind::unit, .slot = slot, .count = range.count};
    if (range.table == nullptr) {
      step.first = range.base;
      step.stride = range.stride;
    } else {
      step.other = 1;
      step.first = static_cast<std::int64_t>(program_.positions.size());
      for (std::int64_t k = 0; k < range.count; ++k) program_.positions.push_back(range.at(k));
    }
    program_.steps.push_back(step);
    program_.roundings += range.count;
    return slot;
  }

  Value round_to(Value slot, const softfloat::Format& format) {
    std::vector<softfloat::Format>& formats = program_.formats;
    const auto found = std::find(formats.begin(), formats.end(), format);
    const auto index = static_cast<std::int32_t>(found - formats.begin());
    if (found == formats.end()) formats.push_back(format);
    program_.steps.push_back({.kind = StepKind::round_to, .slot = slot, .other = index});
    program_.roundings += 2;
    return slot;
  }

  Program finish(Value result) {
    program_.slots = next_;
    program_.result = result;
    return std::move(program_);
  }

 private:
  Value allocate() {
    if (!free_.empty()) {
      const Value slot = free_.back();
      free_.pop_back();
      return slot;
    }
    return next_++;
  }

  /// Appends `term` to the run of `step` if it is the next one of an even spacing.
  static bool extend(Step& step, Value slot, std::int64_t term) {
    if (step.slot != slot) return false;
    if (step.kind != StepKind::start && step.kind != StepKind::terms) return false;
    if (step.count == 1) step.stride = term - step.first;
    if (step.first + step.stride * step.count != term) return false;
    ++step.count;
    return true;
  }

  Program program_;
  std::vector<Value> free_;
  std::int32_t next_ = 0;
};

}  // namespace

Program compile_order(const Order& order, std::int64_t n) {
  Recorder recorder;
  const std::int32_t result = walk(order, n, recorder);
  return recorder.finish(result);
}

}  // namespace kvsim::engine
