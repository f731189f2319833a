// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The grammar of orders on any text: an order or one line of error; what is printed is canonical
// and reads back equal. Its tree has every term once.
#include "sim/order.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/targets/input.h"
#include "sim/sum_tree.h"

namespace {

using kvsim::targets::require;

void check_error(const kvsim::Error& error) {
  require(!error.message.empty() && error.message.size() < 4000);
  for (const char character : error.message) require(static_cast<unsigned char>(character) >= ' ');
  require(error.kind == kvsim::ErrorKind::usage);
}

/// Every one of `length` terms is a leaf of the order's tree, once.
void check_tree(const kvsim::Order& order, std::int64_t length) {
  const auto tree = kvsim::build_sum_tree(order, length);
  require(tree.has_value());
  std::vector<int> seen(static_cast<std::size_t>(length));
  const auto see = [&](std::int64_t term) {
    require(term < length);
    if (term >= 0) ++seen[static_cast<std::size_t>(term)];
  };
  for (const kvsim::SumNode& node : tree->nodes) {
    if (node.kind == kvsim::SumNodeKind::term || node.kind == kvsim::SumNodeKind::add_term) {
      see(node.first);
    }
    for (std::int64_t i = 0; i < node.count; ++i) {
      see(tree->terms[static_cast<std::size_t>(node.first + i)]);
    }
  }
  for (const int times : seen) require(times == 1);
  require(!kvsim::to_string(*tree).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto order = kvsim::parse_order(text);
  if (!order) {
    check_error(order.error());
    return 0;
  }
  const std::string canonical = kvsim::to_string(*order);
  const auto again = kvsim::parse_order(canonical);
  require(again.has_value());
  require(*again == *order);
  require(kvsim::to_string(*again) == canonical);
  for (const std::int64_t length : {0, 1, 2, 3, 4, 7, 8, 31, 128, 1000}) {
    const auto fits = kvsim::check_length(*order, length);
    if (!fits) check_error(fits.error());
    if (fits && *fits && length > 0) {
      const std::int64_t height = kvsim::height(*order, length);
      require(height >= 0 && height < length);
      if (length <= 31) check_tree(*order, length);
    }
  }
  return 0;
}
