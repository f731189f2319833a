// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/probe/unit_under_test.h"
#include "gpu/reveal/addition_tree.h"
#include "gpu/reveal/arithmetic_probe.h"
#include "gpu/reveal/probe_calls.h"
#include "gpu/reveal/reduction.h"
#include "softfloat/result.h"

namespace kvsim::gpu {

/// The terms of one fused node as an instruction, so that the probes of gpu/probe take it: all
/// other terms of the sum are 0, and c is 0.
class FusedNodeUnit final : public UnitUnderTest {
 public:
  /// All must outlive it. `terms`: those of the node.
  FusedNodeUnit(ProbeCalls& calls, const Reduction& reduction, std::vector<std::int32_t> terms);

  [[nodiscard]] const UnitShape& shape() const override { return shape_; }
  /// Products may be any that the reduction takes with one power of two as the left factor of a
  /// term in all rows. Errors: those of the back end; (cannot_tell) other products, another c.
  [[nodiscard]] Result<std::vector<softfloat::Bits>> run(std::span<const ProbeRow> rows) override;

 private:
  ProbeCalls& calls_;
  std::vector<std::int32_t> terms_;
  UnitShape shape_;
};

/// Adds to `found`, which has precision, rounding and fraction bits, the exponent with which zero
/// products take part in the alignment of the last fused node, by the method of
/// find_zero_exponent(): what earlier nodes give passes through later ones, whose terms are zeros
/// too. Or why it is not visible. Errors: those of the back end.
[[nodiscard]] Result<bool> add_zero_exponent(ProbeCalls& calls, const Reduction& reduction,
                                             const AdditionTree& tree, ArithmeticFindings& found);

}  // namespace kvsim::gpu
