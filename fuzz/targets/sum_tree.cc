// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
//
// The text of a tree of additions, for any order: a reader of its own finds every term once in it,
// and what the text says, computed in the host's floats, is what the tree evaluates to. The first
// byte is the number of terms, the rest the text of an order.
#include "sim/sum_tree.h"

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/targets/input.h"
#include "sim/order.h"
#include "softfloat/arithmetic.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace {

using kvsim::targets::require;
namespace sf = kvsim::softfloat;

/// Reads the canonical text of a tree and computes it; nothing where a sum is exact or a matrix
/// unit's.
class TextReader {
 public:
  TextReader(std::string_view text, const std::vector<float>& terms)
      : rest_(text), terms_(terms), seen_(terms.size()) {}

  std::optional<float> read_all() {
    const auto value = read();
    require(rest_.empty());
    for (const int times : seen_) require(times == 1);
    return value;
  }

 private:
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::optional<float> read() {
    if (take("zero")) return 0.0F;
    if (take("(")) {
      const auto left = read();
      require(take("+"));
      const auto right = read();
      require(take(")"));
      if (!left || !right) return std::nullopt;
      return *left + *right;
    }
    if (take("[")) {
      const auto inside = read();
      require(take("]"));
      return inside;
    }
    if (take("exact(")) {
      read_list();
      require(take(")"));
      return std::nullopt;
    }
    require(!rest_.empty());
    return rest_.front() >= '0' && rest_.front() <= '9' ? read_term() : read_named();
  }

  std::optional<float> read_term() {
    std::size_t term = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), term);
    require(error == std::errc() && term < seen_.size());
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    ++seen_[term];
    return terms_[term];
  }

  void read_list() {
    do {
      if (!take("zero")) read_term();
    } while (take(","));
  }

  /// `UNIT{L;0,1}`, `UNIT{L+R}` or `bfloat16(L)`.
  std::optional<float> read_named() {
    const std::size_t brace = rest_.find('{');
    const std::size_t bracket = rest_.find('(');
    const std::string_view name = rest_.substr(0, std::min(brace, bracket));
    if (const auto* format = sf::find_format(name); format != nullptr && bracket < brace) {
      rest_.remove_prefix(bracket + 1);
      const auto inside = read();
      require(take(")"));
      if (!inside) return std::nullopt;
      return sf::to_float(format->format,
                          sf::convert(format->format, sf::binary32, sf::from_float(*inside)).bits);
    }
    require(brace != std::string_view::npos);
    rest_.remove_prefix(brace + 1);
    read();
    if (take(";")) {
      read_list();
    } else {
      require(take("+"));
      read();
    }
    require(take("}"));
    return std::nullopt;
  }

  std::string_view rest_;
  const std::vector<float>& terms_;
  std::vector<int> seen_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::int64_t length = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto order = kvsim::parse_order(text);
  if (!order) return 0;  // what its errors are is the matter of the target `order`
  const auto tree = kvsim::build_sum_tree(*order, length);
  if (!tree) return kvsim::targets::check_error(tree.error()), 0;
  std::vector<float> terms;
  std::vector<sf::Bits> codes;
  for (std::int64_t i = 0; i < length; ++i) {
    // Up to 13 bits each at 32 places, so that additions round.
    const std::uint64_t word = kvsim::targets::mix(static_cast<std::uint64_t>(i));
    const auto number = static_cast<float>(static_cast<std::int64_t>(word % 8191) - 4095);
    const auto power = static_cast<std::uint32_t>(111 + (word >> 32U) % 32);
    terms.push_back(number * std::bit_cast<float>(power << 23U));
    codes.push_back(sf::from_float(terms.back()));
  }
  const std::string written = kvsim::to_string(*tree);
  const auto value = TextReader(written, terms).read_all();
  require(kvsim::digest(*tree).size() == 64 && !kvsim::to_graphviz(*tree).empty());
  if (!value) return 0;
  const std::vector<sf::Bits> ones(codes.size(), sf::from_float(1.0F));
  const auto evaluated =
      kvsim::evaluate_tree(*tree, kvsim::Product::rounded, sf::binary32, sf::binary32, codes, ones);
  require(evaluated.has_value() && evaluated->bits == sf::from_float(*value));
  return 0;
}
