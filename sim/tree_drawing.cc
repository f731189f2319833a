// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/tree_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "softfloat/index.h"

namespace kvsim {
namespace {

/// A tree drawn from the sum down: terms on the lower edge, every sum one step above its highest
/// operand.
class Drawing {
 public:
  Drawing(const TreeDrawing& drawing, std::int64_t most)
      : nodes_(drawing.nodes), caption_(drawing.caption) {
    // The smallest box that leaves few enough leaves.
    std::int64_t low = 1;
    std::int64_t high = nodes_.empty() ? 1 : nodes_.back().leaves;
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
    top_ = margin + caption_line * static_cast<double>(caption_.size());
    const double height = top_ + margin + row * static_cast<double>(highest_ + 1);
    std::string text = svg_begin(std::max(width, text_width(caption_) + 2 * margin), height);
    for (std::size_t i = 0; i < caption_.size(); ++i) {
      text +=
          fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"start\">{}</text>\n", margin,
                      margin + caption_line * static_cast<double>(i), xml_text(caption_[i]));
    }
    for (const std::int32_t i : order_) {
      if (is_leaf(i)) continue;
      for (const std::int32_t child : node(i).children) {
        text += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#888\"/>\n",
                            x_[index(i)], y(i), x_[index(child)], y(child));
      }
    }
    for (const std::int32_t i : order_) text += shape(i);
    for (const std::int32_t i : order_) text += label(i);
    return text + "</svg>\n";
  }

 private:
  static constexpr double column = 24;
  static constexpr double row = 22;
  static constexpr double margin = 20;
  static constexpr double caption_line = 15;

  [[nodiscard]] bool is_leaf(std::int32_t i) const { return node(i).leaves <= box_; }

  [[nodiscard]] std::int64_t leaves_with_boxes_of(std::int64_t box) const {
    std::int64_t leaves = 0;
    for (const DrawnNode& sum : nodes_) {
      if (sum.leaves <= box) continue;
      for (const std::int32_t child : sum.children) {
        leaves += node(child).leaves <= box ? 1 : 0;
      }
    }
    return leaves;
  }

  /// Leaves from left to right, then every sum between its operands.
  void place() {
    x_.assign(nodes_.size(), 0);
    level_.assign(nodes_.size(), 0);
    std::vector<std::int32_t> later;
    if (!nodes_.empty()) later.push_back(static_cast<std::int32_t>(nodes_.size() - 1));
    while (!later.empty()) {
      const std::int32_t i = later.back();
      later.pop_back();
      order_.push_back(i);
      if (is_leaf(i)) {
        x_[index(i)] = margin + column * (static_cast<double>(leaves_++) + 0.5);
        continue;
      }
      const auto& children = node(i).children;
      later.insert(later.end(), children.rbegin(), children.rend());
    }
    for (std::size_t k = order_.size(); k-- > 0;) {
      const std::int32_t i = order_[k];
      if (is_leaf(i)) continue;
      const auto& children = node(i).children;
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
    return top_ + row * static_cast<double>(highest_ - level_[index(i)]);
  }

  /// The dot of a sum, or the box that stands for a subtree.
  [[nodiscard]] std::string shape(std::int32_t i) const {
    const DrawnNode& one = node(i);
    if (one.children.empty()) return {};
    if (is_leaf(i)) {
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"20\" height=\"14\" fill=\"#ddd\"/>\n",
          x_[index(i)] - 10, y(i) - 2);
    }
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"{}\n",
                       x_[index(i)], y(i), one.radius, one.fill,
                       one.title.empty() ? "/>" : ">" + title(one.title) + "</circle>");
  }

  /// Its text, with a white edge where lines may cross it.
  [[nodiscard]] std::string label(std::int32_t i) const {
    const DrawnNode& one = node(i);
    const double left = x_[index(i)];
    if (one.children.empty()) {
      const bool is_marked = one.fill != DrawnNode{}.fill;
      return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}{}</text>\n", left, y(i) + 12,
                         is_marked ? fmt::format(" fill=\"{}\"", one.fill) : "",
                         xml_text(one.label), title(one.title));
    }
    if (is_leaf(i)) {
      return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n", left, y(i) + 9,
                         one.leaves, title(one.box_title));
    }
    if (one.label.empty()) return {};
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"start\" stroke=\"white\" "
        "stroke-width=\"4\" paint-order=\"stroke\">{}</text>\n",
        left + one.radius + 3, y(i) + 3, xml_text(one.label));
  }

  [[nodiscard]] static std::string title(const std::string& text) {
    return text.empty() ? "" : fmt::format("<title>{}</title>", xml_text(text));
  }
  [[nodiscard]] const DrawnNode& node(std::int32_t i) const { return nodes_[index(i)]; }

  const std::vector<DrawnNode>& nodes_;
  const std::vector<std::string>& caption_;
  double top_ = margin;
  std::int64_t box_ = 1;
  std::size_t leaves_ = 0;
  int highest_ = 0;
  std::vector<std::int32_t> order_;
  std::vector<double> x_;
  std::vector<int> level_;
};

}  // namespace

std::string draw_tree(const TreeDrawing& drawing, std::int64_t most_leaves) {
  return Drawing(drawing, most_leaves).draw();
}

std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

double text_width(std::span<const std::string> lines) {
  std::size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  return 5.8 * static_cast<double>(longest);
}

std::string svg_begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"10\" "
      "text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
}

}  // namespace kvsim
