// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "gpu/reveal/addition_tree.h"

namespace kvsim::gpu {
namespace {

using Node = AdditionTree::Node;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A tree drawn from the sum down: terms on the lower edge, every sum one step above its highest
/// operand.
class Drawing {
 public:
  Drawing(const AdditionTree& tree, std::int64_t most) : tree_(tree) {
    // The smallest box that leaves few enough leaves.
    std::int64_t low = 1;
    std::int64_t high = std::max<std::int64_t>(1, tree.terms());
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (leaves_with_boxes_of(middle) <= most) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    box_ = low;
  }

  std::string draw() {
    place();
    const double width =
        margin * 2 + column * static_cast<double>(std::max<std::size_t>(leaves_, 1));
    const double height = margin * 2 + row * static_cast<double>(highest_ + 1);
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"10\" "
        "text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, height);
    for (const std::int32_t i : order_) {
      if (is_leaf(i)) continue;
      for (const std::int32_t child : tree_.nodes()[index(i)].children) {
        text += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#888\"/>\n",
                            x_[index(i)], y(i), x_[index(child)], y(child));
      }
    }
    for (const std::int32_t i : order_) text += label(i);
    return text + "</svg>\n";
  }

 private:
  static constexpr double column = 24;
  static constexpr double row = 22;
  static constexpr double margin = 20;

  [[nodiscard]] bool is_leaf(std::int32_t i) const {
    return tree_.nodes()[index(i)].leaves <= box_;
  }

  [[nodiscard]] std::int64_t leaves_with_boxes_of(std::int64_t box) const {
    std::int64_t leaves = 0;
    for (const Node& node : tree_.nodes()) {
      if (node.leaves <= box) continue;
      for (const std::int32_t child : node.children) {
        leaves += tree_.nodes()[index(child)].leaves <= box ? 1 : 0;
      }
    }
    return leaves;
  }

  /// Leaves from left to right, then every sum between its operands.
  void place() {
    x_.assign(tree_.nodes().size(), 0);
    level_.assign(tree_.nodes().size(), 0);
    std::vector<std::int32_t> later;
    if (!tree_.empty()) later.push_back(static_cast<std::int32_t>(tree_.nodes().size() - 1));
    while (!later.empty()) {
      const std::int32_t i = later.back();
      later.pop_back();
      order_.push_back(i);
      if (is_leaf(i)) {
        x_[index(i)] = margin + column * (static_cast<double>(leaves_++) + 0.5);
        continue;
      }
      const auto& children = tree_.nodes()[index(i)].children;
      later.insert(later.end(), children.rbegin(), children.rend());
    }
    for (std::size_t k = order_.size(); k-- > 0;) {
      const std::int32_t i = order_[k];
      if (is_leaf(i)) continue;
      const auto& children = tree_.nodes()[index(i)].children;
      double sum = 0;
      for (const std::int32_t child : children) {
        sum += x_[index(child)];
        level_[index(i)] = std::max(level_[index(i)], level_[index(child)] + 1);
      }
      x_[index(i)] = sum / static_cast<double>(children.size());
      highest_ = std::max(highest_, level_[index(i)]);
    }
  }

  [[nodiscard]] double y(std::int32_t i) const {
    return margin + row * static_cast<double>(highest_ - level_[index(i)]);
  }

  [[nodiscard]] std::string label(std::int32_t i) const {
    const Node& node = tree_.nodes()[index(i)];
    const double left = x_[index(i)];
    if (node.term >= 0) {
      return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left, y(i) + 12, node.term);
    }
    if (is_leaf(i)) {
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"20\" height=\"14\" fill=\"#ddd\"/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\">{}<title>{} terms from {}</title></text>\n",
          left - 10, y(i) - 2, left, y(i) + 9, node.leaves, node.leaves, node.smallest);
    }
    const bool many = node.children.size() > 2;
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", left, y(i),
                       many ? 5 : 3,
                       node.exact ? "#36c"
                       : many     ? "#c33"
                                  : "#333");
  }

  const AdditionTree& tree_;
  std::int64_t box_ = 1;
  std::size_t leaves_ = 0;
  int highest_ = 0;
  std::vector<std::int32_t> order_;
  std::vector<double> x_;
  std::vector<int> level_;
};

}  // namespace

std::string to_svg(const AdditionTree& tree, std::int64_t max_terms) {
  return Drawing(tree, max_terms).draw();
}

}  // namespace kvsim::gpu
