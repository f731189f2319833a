// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "gpu/probe/prober.h"

namespace kvsim::gpu {
namespace {

/// Sums a large and a small part, so that the small part lies below the last place of the result.
/// A unit that cuts its terms off at the last place of the largest one shows its own rounding only
/// where the sum has carried beyond that place.
class SumProbe {
 public:
  explicit SumProbe(const Prober& prober)
      : prober_(&prober), group_(last_group(prober.structure(), prober.shape().products)) {
    const std::size_t size = group_.size();
    if (prober.fused() && prober.addend_first() && size >= 3) {
      form_ = Form::carry_with_addend;
    } else if (prober.fused() && !prober.addend_first() && size >= 7) {
      form_ = Form::carry;
    } else if (prober.addend_first()) {
      form_ = Form::addend;
    } else if (size >= 3) {
      form_ = Form::products;
    } else {
      form_ = Form::none;
    }
    const ProbeRange& range = prober.range();
    if (form_ == Form::carry) unit_ = std::max(range.smallest, range.output_smallest);
  }

  [[nodiscard]] bool possible() const { return form_ != Form::none; }
  /// The result's last place lies that many bits above the last place of the largest term.
  [[nodiscard]] int carried() const {
    return form_ == Form::carry || form_ == Form::carry_with_addend ? 2 : 0;
  }

  /// ±large(bits) is the large part; the small part is a number from 1 to 7 of unit(bits).
  [[nodiscard]] double large(int bits) const {
    return std::ldexp(1.0, bits + carried() + unit_exponent(bits));
  }
  [[nodiscard]] double unit(int bits) const { return std::ldexp(1.0, unit_exponent(bits)); }

  bool fill(RowBuilder& builder, int bits, int small, bool negative) const {
    if (bits + carried() + unit_exponent(bits) >= prober_->range().output_largest) return false;
    const double large = std::ldexp(1.0, bits);
    const double sign = negative ? -1 : 1;
    switch (form_) {
      case Form::carry_with_addend:
        return products(builder, 3, bits, negative) &&
               builder.addend(sign * (large + small) * unit(bits));
      case Form::carry:
        return products(builder, 4, bits, negative) && small_bits(builder, 4, small, negative);
      case Form::addend:
        return builder.addend(sign * (large + (small & 4))) &&
               builder.factors(group_[0], sign * (small & 3), 1);
      case Form::products:
        return products(builder, 1, bits, negative) &&
               small_bits(builder, 1, small & 4, negative) &&
               builder.factors(group_[2], sign * (small & 3), 1);
      case Form::none:
        break;
    }
    return false;
  }

 private:
  enum class Form { carry_with_addend, carry, addend, products, none };

  /// Where only c has the small part, the products may all be 1: any format has that.
  [[nodiscard]] int unit_exponent(int bits) const {
    return form_ == Form::carry_with_addend ? -bits : unit_;
  }

  bool products(RowBuilder& builder, std::size_t number, int bits, bool negative) const {
    const int exponent = bits + unit_exponent(bits);
    for (std::size_t i = 0; i < number; ++i) {
      if (!builder.product(group_[i], exponent, negative)) return false;
    }
    return true;
  }

  /// The bits of a number as products of their own.
  bool small_bits(RowBuilder& builder, std::size_t first, int small, bool negative) const {
    for (int bit = 0; bit < 3; ++bit) {
      if ((small >> bit & 1) == 0) continue;
      if (!builder.product(group_[first++], bit + unit_, negative)) return false;
    }
    return true;
  }

  const Prober* prober_;
  std::vector<int> group_;  ///< the last block: what later ones cut off would be lost too
  Form form_ = Form::none;
  int unit_ = 0;  ///< exponent of the smallest product
};

struct RoundingPattern {
  std::string_view name;
  std::array<int, 6> positive;  ///< ¼, ½, ¾ of a unit above an even number, then above an odd one
  std::array<int, 6> negative;  ///< of magnitudes
};
constexpr std::array patterns{
    RoundingPattern{"toward zero", {}, {}},
    RoundingPattern{"to nearest, ties to even", {0, 0, 1, 0, 1, 1}, {0, 0, 1, 0, 1, 1}},
    RoundingPattern{"to nearest, ties away", {0, 1, 1, 0, 1, 1}, {0, 1, 1, 0, 1, 1}},
    RoundingPattern{"down", {}, {1, 1, 1, 1, 1, 1}},
    RoundingPattern{"up", {1, 1, 1, 1, 1, 1}, {}},
};

/// What six results are, in units above the number that was not rounded up.
std::array<int, 6> steps(const std::vector<double>& results, double base, double unit) {
  std::array<int, 6> out{};
  for (std::size_t i = 0; i < out.size() && i < results.size(); ++i) {
    const double above = (std::fabs(results[i]) - base) / unit - (i < 3 ? 0.0 : 1.0);
    out.at(i) = std::fabs(above) < 100 ? static_cast<int>(above) : 100;
  }
  return out;
}

/// The rounding whose pattern two series of six results follow.
Seen rounding(const std::vector<double>& positive, const std::vector<double>& negative, double base,
              double unit) {
  if (positive.size() < 6 || negative.size() < 6) return {};
  for (const RoundingPattern& pattern : patterns) {
    if (steps(positive, base, unit) == pattern.positive &&
        steps(negative, base, unit) == pattern.negative) {
      return seen_word(pattern.name);
    }
  }
  return seen_word("none of the IEEE directions");
}

/// ¼, ½ and ¾ of a unit above an even number, then above an odd one.
int small_part(int number) { return number < 3 ? number + 1 : number + 2; }

/// The addition of c where it comes last: c is large, one product small.
void find_last_rounding(Prober& prober) {
  const int bits = prober.shape().output.precision + 1;
  const auto series = [&](double sign) {
    return prober.values({.count = 6}, [&](RowBuilder& builder, int i) {
      const int small = small_part(i);
      return builder.addend(sign * (std::ldexp(1.0, bits) + (small & 4))) &&
             builder.factors(prober.group()[0], sign * (small & 3), 1);
    });
  };
  prober.add(property::last_rounding, rounding(series(1), series(-1), std::ldexp(1.0, bits), 4));
}

}  // namespace

void find_rounding(Prober& prober) {
  const SumProbe probe(prober);
  if (!prober.addend_first()) find_last_rounding(prober);
  if (!probe.possible()) return;
  // How far below a large sum 1 still shows.
  const std::vector<double> sums = prober.values({.first = 1}, [&](RowBuilder& builder, int bits) {
    return probe.fill(builder, bits, 1, false);
  });
  std::vector<double> excess;
  excess.reserve(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    excess.push_back(sums[i] - probe.large(static_cast<int>(i) + 1));
  }
  const LastVisible last = last_visible(excess, [](double above) { return above != 0; });
  const int precision = last.steps + 2 + probe.carried();
  if (last.all) {
    prober.add(property::precision, {.kind = Seen::Kind::at_least, .number = precision});
    return;
  }
  prober.add(property::precision, seen_number(precision));

  // A unit in the last place of the result is 4 of the smallest part.
  const int bits = precision + 1 - probe.carried();
  const auto series = [&](bool negative) {
    return prober.values({.count = 6}, [&](RowBuilder& builder, int i) {
      return probe.fill(builder, bits, small_part(i), negative);
    });
  };
  prober.add(property::rounding,
             rounding(series(false), series(true), probe.large(bits), 4 * probe.unit(bits)));
}

}  // namespace kvsim::gpu
