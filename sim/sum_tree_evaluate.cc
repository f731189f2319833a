// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <vector>

#include "sim/order.h"
#include "sim/sum_ops.h"
#include "sim/sum_tree.h"
#include "sim/sum_tree_nodes.h"
#include "sim/units/block.h"
#include "sim/units/dot.h"
#include "sim/units/matrix_unit.h"
#include "softfloat/mutants.h"

namespace kvsim {
namespace {

using softfloat::Bits;
using softfloat::Format;
using softfloat::Mode;
using softfloat::Rounded;

/// The formats of a tree as an order, for check_formats().
Order order_with_formats_of(const SumTree& tree) {
  Order order;
  for (const Format& format : tree.formats) {
    order.items.push_back({.kind = OrderKind::split, .size = 1, .partials = format});
  }
  if (!tree.unit.empty()) {
    order.items.push_back({.kind = OrderKind::matrix_unit, .unit = tree.unit});
  }
  return order;
}

/// The unit with instructions of one block, whose elements come in the order given and whose addend
/// comes first.
MatrixUnit one_block_of(MatrixUnit unit) {
  unit.blocks = 1;
  unit.order = OperandOrder::in_turn;
  unit.addend = Addend::first;
  unit.accumulators = 1;
  if (unit.operation == UnitOperation::fma) unit.fan_in = 1;
  return unit;
}

bool is_of_unit(const SumNode& node) {
  return node.kind == SumNodeKind::unit_block || node.kind == SumNodeKind::unit_add;
}

/// Whether the tree can sum these numbers: true, or what cannot be.
Result<bool> check(const SumTree& tree, const Format& input, const Format& accumulator,
                   std::span<const Bits> a, std::span<const Bits> b) {
  const auto length = static_cast<std::size_t>(tree.length);
  if (a.size() != length || b.size() != length) {
    return Error{ErrorKind::usage,
                 fmt::format("{} and {} factors for a tree of {} terms; accepted: "
                             "one of each for every term",
                             a.size(), b.size(), length)};
  }
  if (tree.nodes.empty()) return Error{ErrorKind::usage, "a tree without nodes"};
  return check_formats(order_with_formats_of(tree), input, accumulator);
}

class Evaluator {
 public:
  Evaluator(const SumTree& tree, const Order& formats, Product product, const Format& input,
            const Format& accumulator, std::span<const Bits> a, std::span<const Bits> b,
            const Mode& mode)
      : tree_(tree),
        ops_(formats, product, input, accumulator, a, b, mode),
        unit_(one_block_of(unit_of(formats).value_or(MatrixUnit{}))),
        input_(input),
        accumulator_(accumulator),
        a_(a),
        b_(b) {}

  Rounded run() {
    values_.reserve(tree_.nodes.size());
    for (const SumNode& node : tree_.nodes) values_.push_back(evaluate(node));
    return ops_.finish(sum(static_cast<std::int32_t>(tree_.nodes.size() - 1)));
  }

  /// The nodes' values after run().
  [[nodiscard]] std::vector<double> nodes() const {
    std::vector<double> result;
    result.reserve(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Value& value = values_[i];
      if (value.term >= 0) {
        const auto term = static_cast<std::size_t>(value.term);
        result.push_back(softfloat::to_double(input_, a_[term]) *
                         softfloat::to_double(input_, b_[term]));
        continue;
      }
      const Format& format = is_of_unit(tree_.nodes[i]) ? unit_.output : accumulator_;
      result.push_back(softfloat::to_double(format, value.bits));
    }
    return result;
  }

 private:
  using Value = SumOps::Value;

  [[nodiscard]] const SumNode& node(std::int32_t i) const {
    return tree_.nodes[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] const Value& raw(std::int32_t i) const {
    return values_[static_cast<std::size_t>(i)];
  }
  /// The value of a node in the accumulator format; those of unit nodes are kept in the unit's.
  Value sum(std::int32_t i) {
    return is_of_unit(node(i)) ? ops_.from(unit_.output, raw(i).bits) : raw(i);
  }

  Value evaluate(const SumNode& node) {
    switch (node.kind) {
      case SumNodeKind::term:
        return ops_.first(node.first);
      case SumNodeKind::add_term:
        if (mutant_is_on(Mutant::tree_is_not_fused)) {
          return ops_.add(sum(node.left), ops_.first(node.first));
        }
        return ops_.add_term(sum(node.left), node.first);
      case SumNodeKind::add:
        return ops_.add(sum(node.left), sum(node.right));
      case SumNodeKind::exact:
        return exact(node);
      case SumNodeKind::unit_block:
        return block(node);
      case SumNodeKind::unit_add:
        return {units::add_step(unit_, raw(node.left).bits, raw(node.right).bits)};
      case SumNodeKind::rounded:
        return ops_.round_to(sum(node.left), tree_.formats[static_cast<std::size_t>(node.first)]);
      case SumNodeKind::zero:
        break;
    }
    return ops_.zero();
  }

  Value exact(const SumNode& node) {
    const std::int64_t* const terms = tree_.terms.data() + node.first;
    const std::int64_t skipped = *terms == SumTree::zero_term ? 1 : 0;
    return ops_.exact({terms + skipped, 0, 1, node.count - skipped}, skipped != 0);
  }

  Value block(const SumNode& node) {
    std::vector<Bits> a;
    std::vector<Bits> b;
    for (std::int64_t i = node.first; i < node.first + node.count; ++i) {
      const std::int64_t term = tree_.terms[static_cast<std::size_t>(i)];
      a.push_back(term == SumTree::zero_term ? Bits{0} : a_[static_cast<std::size_t>(term)]);
      b.push_back(term == SumTree::zero_term ? Bits{0} : b_[static_cast<std::size_t>(term)]);
    }
    return {unit_dot(unit_, {.a = a, .b = b, .c = raw(node.left).bits})};
  }

  const SumTree& tree_;
  SumOps ops_;
  MatrixUnit unit_;  // only where the tree has one
  const Format& input_;
  const Format& accumulator_;
  std::span<const Bits> a_;
  std::span<const Bits> b_;
  std::vector<Value> values_;
};

}  // namespace

Result<Rounded> evaluate_tree(const SumTree& tree, Product product, const Format& input,
                              const Format& accumulator, std::span<const Bits> a,
                              std::span<const Bits> b, const Mode& mode) {
  if (const Result<bool> fits = check(tree, input, accumulator, a, b); !fits) return fits.error();
  const Order formats = order_with_formats_of(tree);
  return Evaluator(tree, formats, product, input, accumulator, a, b, mode).run();
}

Result<std::vector<double>> evaluate_nodes(const SumTree& tree, Product product,
                                           const Format& input, const Format& accumulator,
                                           std::span<const Bits> a, std::span<const Bits> b) {
  if (const Result<bool> fits = check(tree, input, accumulator, a, b); !fits) return fits.error();
  const Order formats = order_with_formats_of(tree);
  const Mode mode;
  Evaluator evaluator(tree, formats, product, input, accumulator, a, b, mode);
  static_cast<void>(evaluator.run());
  return evaluator.nodes();
}

Format format_of_node(const SumTree& tree, const SumNode& node, const Format& accumulator) {
  if (!is_of_unit(node)) return accumulator;
  return unit_of(order_with_formats_of(tree)).value_or(MatrixUnit{}).output;
}

}  // namespace kvsim
