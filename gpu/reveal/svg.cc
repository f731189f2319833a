// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>

#include <string>
#include <utility>

#include "gpu/reveal/addition_tree.h"
#include "sim/tree_drawing.h"

namespace kvsim::gpu {

std::string to_svg(const AdditionTree& tree, std::int64_t max_terms) {
  TreeDrawing drawing;
  drawing.nodes.reserve(tree.nodes().size());
  for (const AdditionTree::Node& node : tree.nodes()) {
    DrawnNode drawn{.children = node.children, .leaves = node.leaves};
    if (node.term >= 0) {
      drawn.label = fmt::to_string(node.term);
    } else {
      drawn.box_title = fmt::format("{} terms from {}", node.leaves, node.smallest);
      const bool many = node.children.size() > 2;
      drawn.radius = many ? 5 : 3;
      drawn.fill = node.exact ? "#36c" : many ? "#c33" : "#333";
    }
    drawing.nodes.push_back(std::move(drawn));
  }
  return draw_tree(drawing, max_terms);
}

}  // namespace kvsim::gpu
