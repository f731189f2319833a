// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/blame_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "sim/sum_tree.h"
#include "sim/tree_drawing.h"

namespace kvsim::fuzz {
namespace {

constexpr std::string_view decisive_fill = "#d11";

/// "#fff" where a rounding does nothing, orange where it is the whole error.
std::string shade(const Blame& blame, double effect) {
  const double share = std::clamp(std::abs(effect / blame.error), 0.0, 1.0);
  const double depth = std::sqrt(share);
  return fmt::format("#ff{:02x}{:02x}", static_cast<int>(255 - 110 * depth),
                     static_cast<int>(255 - 255 * depth));
}

std::string error_text(const Blame& blame, const Rounding& rounding) {
  // Adding 0 takes the sign of -0 away.
  return fmt::format("{:.2g} ulp, {:.0f} %", rounding.error_ulp,
                     std::round(100 * rounding.effect / blame.error) + 0.0);
}

std::string title_text(const Blame& blame, const Rounding& rounding) {
  return fmt::format("{}: {}, {}", rounding.place, rounding.step, error_text(blame, rounding));
}

/// Lines above; orange is the `more` (larger or darker) the more the rounding errs.
std::vector<std::string> caption(const Blame& blame, std::string_view more) {
  std::vector<std::string> lines{
      fmt::format("red: decides, {} of {} roundings that err; orange: errs, the more the {}",
                  std::ranges::count_if(blame.roundings, &Rounding::decisive), blame.erring, more),
      fmt::format("error in units in the last place (ulp), and its part of the path's error of "
                  "{:.3g} logits",
                  blame.error)};
  for (const Rounding& rounding : blame.roundings) {
    if (rounding.decisive) lines.push_back("decides: " + title_text(blame, rounding));
  }
  constexpr std::size_t most_lines = 12;
  if (lines.size() > most_lines) {
    lines.resize(most_lines);
    lines.emplace_back("…");
  }
  return lines;
}

// Sums

/// Appends the tree of one token; returns its root.
class TokenTree {
 public:
  TokenTree(const SumTree& tree, const Blame& blame, TreeDrawing& drawing)
      : tree_(tree), blame_(blame), drawing_(drawing) {}

  std::int32_t add(std::int64_t token) {
    std::vector<const Rounding*> of_node(tree_.nodes.size());
    for (const Rounding& rounding : blame_.roundings) {
      if (rounding.group == token) of_node[static_cast<std::size_t>(rounding.number)] = &rounding;
    }
    std::vector<std::int32_t> drawn(tree_.nodes.size());
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
      drawn[i] = add_node(tree_.nodes[i], drawn, of_node[i]);
    }
    return drawn.back();
  }

 private:
  std::int32_t add_node(const SumNode& node, const std::vector<std::int32_t>& drawn,
                        const Rounding* rounding) {
    DrawnNode sum;
    sum.leaves = 0;
    const auto take = [&](std::int32_t child) {
      sum.children.push_back(child);
      sum.leaves += drawing_.nodes[static_cast<std::size_t>(child)].leaves;
    };
    for (const std::int32_t child : {node.left, node.right}) {
      if (child >= 0) take(drawn[static_cast<std::size_t>(child)]);
    }
    if (node.kind == SumNodeKind::add_term) take(leaf(node.first));
    if (node.kind == SumNodeKind::exact || node.kind == SumNodeKind::unit_block) {
      for (std::int64_t k = node.first; k < node.first + node.count; ++k) {
        take(leaf(tree_.terms[static_cast<std::size_t>(k)]));
      }
    }
    if (node.kind == SumNodeKind::term) sum.label = fmt::to_string(node.first);
    if (node.kind == SumNodeKind::zero) sum.label = "+0";
    if (sum.leaves == 0) sum.leaves = 1;
    if (rounding != nullptr && rounding->error_ulp != 0) mark(*rounding, sum);
    return push(std::move(sum));
  }

  void mark(const Rounding& rounding, DrawnNode& sum) const {
    sum.title = title_text(blame_, rounding);
    sum.fill = rounding.decisive ? decisive_fill : "#e80";
    if (!rounding.decisive) {
      sum.radius = 3 + 3 * std::sqrt(std::min(1.0, std::abs(rounding.effect / blame_.error)));
      return;
    }
    sum.radius = 7;
    if (!sum.children.empty()) sum.label = error_text(blame_, rounding);
  }

  std::int32_t leaf(std::int64_t term) {
    return push({.label = term == SumTree::zero_term ? "+0" : fmt::to_string(term)});
  }
  std::int32_t push(DrawnNode node) {
    drawing_.nodes.push_back(std::move(node));
    return static_cast<std::int32_t>(drawing_.nodes.size() - 1);
  }

  const SumTree& tree_;
  const Blame& blame_;
  TreeDrawing& drawing_;
};

std::string sum_picture(const FlipCase& flip_case, const Blame& blame) {
  const auto tree = build_sum_tree(flip_case.shape.orders[blame.path], flip_case.shape.terms);
  if (!tree) return {};
  TreeDrawing drawing{.caption = caption(blame, "larger")};
  std::vector<std::int32_t> roots;
  for (const std::int64_t token : {0, 1}) {
    const bool decides = std::ranges::any_of(blame.roundings, [&](const Rounding& rounding) {
      return rounding.decisive && rounding.group == token;
    });
    if (decides) roots.push_back(TokenTree(*tree, blame, drawing).add(token));
  }
  if (roots.size() == 2) {
    drawing.nodes.push_back({.children = roots,
                             .leaves = 2 * drawing.nodes.back().leaves,
                             .label = "token 0 − token 1"});
  }
  return draw_tree(drawing, 256);
}

// Attention

constexpr double left_edge = 200;
constexpr double cell_width = 100;
constexpr double cell_height = 18;
constexpr double line_height = 15;
constexpr double margin = 20;

/// One query head: rows are steps, columns blocks of keys and, last, what all blocks share.
struct HeadTable {
  std::vector<std::string> steps;
  std::int64_t columns = 0;
  std::map<std::int64_t, std::string> keys;  ///< of a column that is a block: "0..127"
  std::map<std::pair<std::size_t, std::int64_t>, const Rounding*> cells;  ///< the largest effect
};

std::map<std::int64_t, HeadTable> head_tables(const Blame& blame) {
  std::map<std::int64_t, HeadTable> heads;
  for (const Rounding& rounding : blame.roundings) {
    HeadTable& table = heads[rounding.group];
    auto step = std::ranges::find(table.steps, rounding.step);
    if (step == table.steps.end()) step = table.steps.insert(step, rounding.step);
    table.columns = std::max(table.columns, rounding.number + 1);
    constexpr std::string_view before_keys = ", keys ";
    if (const std::size_t found = rounding.place.find(before_keys); found != std::string::npos) {
      // Of a block's steps the first one is of all of its keys.
      table.keys.try_emplace(rounding.number, rounding.place.substr(found + before_keys.size()));
    }
    const Rounding*& cell =
        table.cells[{static_cast<std::size_t>(step - table.steps.begin()), rounding.number}];
    const auto rank = [](const Rounding& one) {
      return std::pair(one.decisive, std::abs(one.effect));
    };
    if (cell == nullptr || rank(rounding) > rank(*cell)) cell = &rounding;
  }
  return heads;
}

std::string draw_cell(const Blame& blame, const Rounding& rounding, double x, double y) {
  std::string text = fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"#bbb\"><title>{}</title></rect>\n",
      x, y, cell_width, cell_height,
      rounding.decisive ? std::string(decisive_fill) : shade(blame, rounding.effect),
      xml_text(title_text(blame, rounding)));
  if (rounding.error_ulp == 0) return text;
  return text + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x + cell_width / 2,
                            y + 13, rounding.decisive ? " fill=\"white\"" : "",
                            error_text(blame, rounding));
}

std::string attention_picture(const Blame& blame) {
  const auto heads = head_tables(blame);
  const std::vector<std::string> lines = caption(blame, "darker");
  std::string body;
  double y = margin;
  const auto write = [&](std::string_view text, double x, std::string_view anchor = "start") {
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                        anchor, xml_text(text));
  };
  for (const std::string& text : lines) {
    write(text, margin);
    y += line_height;
  }
  std::int64_t columns = 1;
  for (const auto& [head, table] : heads) {
    columns = std::max(columns, table.columns);
    y += line_height;
    write(fmt::format("query head {}: its steps by keys", head), margin);
    const auto column_edge = [](std::int64_t column) {
      return left_edge + cell_width * static_cast<double>(column);
    };
    for (std::int64_t column = 0; column < table.columns; ++column) {
      const auto keys = table.keys.find(column);
      write(keys == table.keys.end() ? "all" : keys->second, column_edge(column) + cell_width / 2,
            "middle");
    }
    y += line_height;
    for (std::size_t step = 0; step < table.steps.size(); ++step) {
      body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"start\">{}</text>\n",
                          margin, y + 5, xml_text(table.steps[step]));
      for (std::int64_t column = 0; column < table.columns; ++column) {
        const auto cell = table.cells.find({step, column});
        if (cell == table.cells.end()) continue;
        body += draw_cell(blame, *cell->second, column_edge(column), y - 8);
      }
      y += cell_height;
    }
  }
  const double right =
      std::max(left_edge + cell_width * static_cast<double>(columns), margin + text_width(lines));
  return svg_begin(right + margin, y + margin) + body + "</svg>\n";
}

}  // namespace

std::string blame_picture(const FlipCase& flip_case, const Blame& blame) {
  return flip_case.shape.kind == CaseKind::sum ? sum_picture(flip_case, blame)
                                               : attention_picture(blame);
}

}  // namespace kvsim::fuzz
