// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Trees of sums as SVG drawings.
namespace kvsim {

/// One node of a drawing.
struct DrawnNode {
  std::vector<std::int32_t> children = {};  ///< none: a leaf
  std::int64_t leaves = 1;                  ///< below
  std::string label = {};                   ///< under a leaf, beside a sum
  std::string title = {};                   ///< shown under the pointer
  std::string box_title = {};               ///< the same, where the sum is drawn as a box
  double radius = 3;                        ///< of the dot of a sum
  std::string_view fill = "#333";
};

/// A tree: children before parents, the last node is the sum.
struct TreeDrawing {
  std::vector<DrawnNode> nodes = {};
  std::vector<std::string> caption = {};  ///< lines above
};

/// The tree drawn from the sum down: leaves on the lower edge, every sum one step above its highest
/// operand. At most `most_leaves` leaves are drawn one by one; larger subtrees become boxes with
/// the number of their leaves.
[[nodiscard]] std::string draw_tree(const TreeDrawing& drawing, std::int64_t most_leaves);

/// The text with the characters escaped that XML gives a meaning.
[[nodiscard]] std::string xml_text(std::string_view text);

/// Room for the longest of the lines, in ten-point letters as wide as most are.
[[nodiscard]] double text_width(std::span<const std::string> lines);

/// The first lines of a drawing of that size, white.
[[nodiscard]] std::string svg_begin(double width, double height);

}  // namespace kvsim
