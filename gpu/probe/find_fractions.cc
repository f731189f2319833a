// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <algorithm>
#include <cmath>

#include "gpu/probe/prober.h"

namespace kvsim::gpu {
namespace {

/// More places than any unit keeps: a unit that shows as many cuts nothing off.
constexpr int unlimited = 45;

Seen limit(const LastVisible& last, int places) {
  if (!last.orderly) return seen_word("not by one limit");
  if (!last.all) return seen_number(places);
  return places >= unlimited ? Seen{.kind = Seen::Kind::no_limit}
                             : Seen{.kind = Seen::Kind::at_least, .number = places};
}

/// Two products cancel; a third one, t places below them, is left or was cut off.
void find_among_products(Prober& prober) {
  const ProbeRange& range = prober.range();
  const int top = std::min(range.largest, range.output_largest - 1);
  const int bottom = std::max(range.smallest, range.output_smallest);
  const auto& group = prober.group();
  const bool three = group.size() >= 4;
  if (!three && !prober.addend_first()) return;
  const auto left = prober.values(
      {.first = 1, .count = std::min(top - bottom, 64)}, [&](RowBuilder& builder, int t) {
        if (three) {
          return builder.product(prober.quarter(0), top) &&
                 builder.product(prober.quarter(1), top, true) &&
                 builder.product(prober.quarter(2), top - t);
        }
        return builder.addend_power(top) && builder.product(group[0], top, true) &&
               builder.product(group[1], top - t);
      });
  const LastVisible last = last_visible(left, [](double value) { return value != 0; });
  prober.add(property::fraction_bits, limit(last, last.steps + 1));
}

/// c is large; a product of the other sign, t places below it, changes the result or was cut off.
void find_beside_addend(Prober& prober) {
  std::vector<double> changes = prober.values({.first = 1}, [&](RowBuilder& builder, int t) {
    return builder.addend_power(t) && builder.product(prober.quarter(0), 0, true);
  });
  for (std::size_t i = 0; i < changes.size(); ++i) {
    changes[i] -= std::ldexp(1.0, static_cast<int>(i) + 1);
  }
  const LastVisible last = last_visible(changes, [](double value) { return value != 0; });
  prober.add(property::addend_bits, limit(last, last.steps + 1));
}

/// c and a product of half a unit of its last place are a tie; a third term, t places below c,
/// breaks it or was cut off. Of negative sums a unit that rounds down shows more of it.
void find_beside_tie(Prober& prober, int precision) {
  const ProbeRange& range = prober.range();
  const int top = std::min(range.output_largest - 1, range.largest + precision);
  const auto series = [&](bool negative) {
    auto values = prober.values({.first = precision + 1}, [&](RowBuilder& builder, int t) {
      return builder.addend_power(top, negative) &&
             builder.product(prober.quarter(0), top - precision, negative) &&
             builder.product(prober.quarter(2), top - t, negative);
    });
    for (double& value : values) value = std::fabs(value) - std::ldexp(1.0, top);
    return last_visible(values, [](double above) { return above != 0; });
  };
  const LastVisible positive = series(false);
  const LastVisible negative = series(true);
  if (positive.steps < 0) {
    prober.add(property::addend_bits, {.kind = Seen::Kind::at_most, .number = precision});
    return;
  }
  const Seen seen = limit(positive, precision + 1 + positive.steps);
  prober.add(property::addend_bits, seen);
  if (seen.kind == Seen::Kind::at_least) return;
  if (seen.kind == Seen::Kind::no_limit) {
    prober.add(property::cut, seen_word("nothing"));
  } else if (negative.steps == positive.steps) {
    prober.add(property::cut, seen_word("toward zero"));
  } else {
    prober.add(property::cut, seen_word(negative.steps > positive.steps ? "down" : "up"));
  }
}

}  // namespace

void find_fractions(Prober& prober) {
  if (!prober.fused()) return;
  find_among_products(prober);
  if (!prober.addend_first()) return;
  const Seen precision = prober.found(property::precision);
  if (prober.found(property::rounding).word == "toward zero") {
    find_beside_addend(prober);
  } else if (precision.kind == Seen::Kind::number) {
    find_beside_tie(prober, precision.number);
  }
}

}  // namespace kvsim::gpu
