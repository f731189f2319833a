// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/property/property.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/property/draw.h"
#include "fuzz/property/plain_sum.h"
#include "fuzz/property/sum_probe.h"
#include "sim/sum_tree.h"
#include "softfloat/formats.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

const Property& named(std::string_view name) { return *find_property(name).value(); }

TEST(Properties, HoldAndTheCanaryDoesNot) {
  std::set<std::string_view> names;
  for (const Property& property : properties()) {
    EXPECT_TRUE(names.insert(property.name).second) << property.name;
    EXPECT_FALSE(property.says.empty() || property.source.empty()) << property.name;
    EXPECT_EQ(property.is_canary, property.name == "canary");
    const std::int64_t runs = property.is_canary ? 20 : 3;
    const PropertyTally tally = run_property(property, {.seed = 11, .count = runs});
    EXPECT_EQ(tally.violation.has_value(), property.is_canary)
        << property.name << ": " << tally.violation.value_or("");
  }
  EXPECT_TRUE(properties().back().is_canary);
}

TEST(Properties, RunsDependOnTheirNumberAlone) {
  const Property& canary = named("canary");
  const auto fails = [&](std::int64_t run) {
    return run_property(canary, {.seed = 5, .first = run, .count = 1}).violation;
  };
  std::vector<Violation> once;
  for (std::int64_t run = 0; run < 30; ++run) once.push_back(fails(run));
  for (std::int64_t run = 30; run-- > 0;) {
    EXPECT_EQ(fails(run), once[static_cast<std::size_t>(run)]) << run;
  }
  const auto failed = std::ranges::count_if(once, &Violation::has_value);
  EXPECT_GT(failed, 3);
  EXPECT_LT(failed, 27);
  // Runs end with the first violation.
  const auto first = std::ranges::find_if(once, &Violation::has_value) - once.begin();
  EXPECT_EQ(run_property(canary, {.seed = 5, .count = 30}).runs, first + 1);
  EXPECT_NE(run_property(canary, {.seed = 6, .first = first}).violation, once[0]);
}

// What the properties found when they were new: gelu in binary64 far from 0, the bound of a unit
// for tf32, lanes with a scalar tail around a matrix unit.
TEST(Properties, RunsThatOnceFailedHold) {
  struct Found {
    std::string_view property;
    std::uint64_t seed;
    std::int64_t run;
  };
  for (const Found& found :
       {Found{"decoder-is-plain", 1, 334}, Found{"decoder-is-plain", 2, 56},
        Found{"decoder-is-plain", 3, 22}, Found{"sums-keep-their-bounds", 1, 21},
        Found{"sums-keep-their-bounds", 1, 132}}) {
    const auto tally = run_property(named(found.property), {found.seed, found.run, 1, Plant::none});
    EXPECT_EQ(tally.violation, std::nullopt) << found.property << ", seed " << found.seed;
  }
}

TEST(Properties, EndWhereTheyAreToldTo) {
  int left = 4;
  const auto tally =
      run_property(named("orders-read-back"), {.count = 1000}, [&] { return --left > 0; });
  EXPECT_EQ(tally.runs, 4);
}

TEST(PropertyCases, ReadBack) {
  for (const PropertyCase& run :
       {PropertyCase{"canary", 3, 17, Plant::none},
        PropertyCase{"cache-on-is-off", 0xffffffffffffffff, 0, Plant::causal_leak}}) {
    const std::string text = to_text(run, "why");
    EXPECT_NE(text.find("# why\n"), std::string::npos);
    EXPECT_EQ(parse_property_case(text).value(), run);
  }
}

TEST(PropertyCases, SayWhatIsWrong) {
  const std::string good = to_text({"canary", 3, 17, Plant::none}, "why");
  const auto message = [&](std::string_view before, std::string_view after) {
    std::string text = good;
    text.replace(text.find(before), before.size(), after);
    const auto read = parse_property_case(text);
    return read ? std::string("accepted") : read.error().message;
  };
  EXPECT_EQ(message("case 1", "case 2"),
            "line 1: 'kvsim property case 2' stands where kvsim property case 1 is accepted");
  EXPECT_EQ(message("seed 3", "seed -3"),
            "line 4: '-3' stands where a number from 0 to 18446744073709551615 is accepted");
  EXPECT_NE(message("canary", "canarys").find("did you mean canary?"), std::string::npos);
  EXPECT_EQ(message("run 17\n", ""), "line 5: 'end' stands where 'run …' is accepted");
  EXPECT_EQ(message("end\n", ""), "line 6: '' stands where end is accepted");
  EXPECT_EQ(message("end\n", "end\nmore\n"), "line 7: 'more' stands where nothing is accepted");
  EXPECT_NE(message("end\n", "plant nothing\nend\n").find("line 6: plant 'nothing'"),
            std::string::npos);
}

// What no mutant shows to fail is shown here, on inputs that are wrong.

TEST(SumProbe, FindsAnotherTree) {
  const Order pairs = parse_order("pairwise").value();
  const Order sequence = parse_order("sequential").value();
  for (const Product product : {Product::rounded, Product::fused, Product::exact}) {
    EXPECT_EQ(probe_violation(build_sum_tree(pairs, 9).value(), pairs, product), std::nullopt);
    EXPECT_NE(probe_violation(build_sum_tree(sequence, 9).value(), pairs, product), std::nullopt);
  }
}

TEST(PlainSum, IsWorkedOutByHand) {
  // 2^24 + 1 ties to 2^24, 1 + 1 does not: the order decides.
  const std::vector<float> terms{0x1p24F, 1, 1, 1, 1};
  const auto sum = [&](std::string_view text) {
    const Order order = parse_order(text).value();
    EXPECT_TRUE(has_plain_sum(order)) << text;
    return plain_sum(order, terms);
  };
  EXPECT_EQ(sum("sequential"), 0x1p24F);                   // every 1 is lost
  EXPECT_EQ(sum("reverse"), 0x1p24F + 4);                  // 4 arrive together
  EXPECT_EQ(sum("pairwise"), 0x1p24F + 4);                 // 2^24 + 2, + 1 ties to even
  EXPECT_EQ(sum("halving"), 0x1p24F + 2);                  // {2^24 + 1, 1 + 1, 1}: 0 + 2, + 1
  EXPECT_EQ(sum("lanes(2)"), 0x1p24F + 2);                 // 2^24 + 1 + 1 and 1 + 1
  EXPECT_EQ(sum("blocks(1)"), 0x1p24F);                    // in sequence
  EXPECT_EQ(sum("split(2)"), 0x1p24F + 2);                 // 2^24, 1, 1 and 1, 1
  EXPECT_EQ(sum("blocks(2,merge=reverse)"), 0x1p24F + 4);  // 1 + 2, + 2^24: 3 ties to even
  EXPECT_FALSE(has_plain_sum(parse_order("exact").value()));
}

}  // namespace
}  // namespace kvsim::fuzz
