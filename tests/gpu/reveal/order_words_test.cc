// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// Which words of the grammar a revealed order gets, and which numbers of terms share them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gpu/reveal/reveal.h"
#include "gpu/reveal/term_classes.h"
#include "gpu/sim_backend.h"
#include "sim/order.h"
#include "softfloat/formats.h"

namespace kvsim::gpu {
namespace {

/// The words that are found for an order of the simulator.
std::string words(const std::string& order, const std::string& product,
                  const softfloat::Format& format, std::int64_t terms,
                  const std::string& operation = "linear") {
  auto backend = make_sim_backend("");
  ReductionShape shape{operation, format, 1, 64, terms};
  shape.attributes = {{"order", order}, {"product", product}};
  auto reduction = make_reduction(**backend, shape);
  if (!reduction) return reduction.error().message;
  const auto found = reveal(**reduction, {.least_outputs = 500});
  if (!found) return found.error().message;
  const RevealedSums& sums = found->classes.front();
  if (!sums.explained || !sums.model->order) return "not explained";
  return to_string(*sums.model->order);
}

void expect_own_words(const std::string& order, const std::string& product,
                      const softfloat::Format& format, std::int64_t terms,
                      const std::string& operation = "linear") {
  EXPECT_EQ(words(order, product, format, terms, operation), order) << terms << " terms";
}

TEST(RevealedWords, OfLanesBehindAHead) {
  using softfloat::binary32;
  expect_own_words("lanes(4,1,join=halving,tail=scalar,head=1)", "rounded", binary32, 96);
  expect_own_words("lanes(4,1,join=halving,tail=scalar,head=4)", "rounded", binary32, 97);
  expect_own_words("lanes(8,1,join=sequential,head=3)", "fused", binary32, 101);
}

TEST(RevealedWords, OfTails) {
  using softfloat::binary32;
  expect_own_words("lanes(4,1,join=halving,tail=scalar,multiple=8)", "rounded", binary32, 103);
  expect_own_words("lanes(4,1,join=sequential,tail=first-lane)", "rounded", binary32, 102);
  expect_own_words("lanes(4,1,join=halving,tail=scalar)", "fused", binary32, 102);
}

TEST(RevealedWords, OfPyTorchsOwnSums) {
  using softfloat::bfloat16;
  expect_own_words("torch-dot(8)", "fused", bfloat16, 128 + 24);
  expect_own_words("torch-dot(8)", "fused", bfloat16, 192);
  expect_own_words("torch-dot(16)", "fused", bfloat16, 100);
  expect_own_words("torch-cascade(8,2)", "rounded", bfloat16, 150, "sum");
  // Numbers of 32 bits keep the lanes that say the same, where they do.
  EXPECT_EQ(words("torch-dot(8)", "fused", softfloat::binary32, 192), "lanes(64,1,join=halving)");
  EXPECT_EQ(words("torch-dot(8)", "fused", softfloat::binary32, 150), "torch-dot(8)");
}

/// "A-B: ORDER" of every class.
std::vector<std::string> classes(Backend& backend, const ReductionShape& shape,
                                 const SizeSweep& range) {
  const auto found = sweep_terms(backend, shape, {.least_outputs = 200}, range);
  if (!found) return {found.error().message};
  std::vector<std::string> texts;
  for (const TermClass& one : *found) {
    const auto& model = one.found.classes.front().model;
    texts.push_back(std::to_string(one.terms.first) + "-" + std::to_string(one.terms.last) + ": " +
                    (model && model->order ? to_string(*model->order) : "none"));
  }
  return texts;
}

TEST(TermClasses, AreNeighboursThatOneOrderFits) {
  auto backend = make_sim_backend("");
  ReductionShape shape{"linear", softfloat::binary32, 1, 32, 1};
  shape.attributes = {{"order", "lanes(4,1,join=halving,tail=scalar)"}, {"product", "rounded"}};
  EXPECT_EQ(classes(**backend, shape, {.first = 30, .last = 37}),
            std::vector<std::string>{"30-37: lanes(4,1,join=halving,tail=scalar)"});
}

TEST(TermClasses, EndWhereAKernelChanges) {
  // Blocks of 192 terms, but of half the terms where those are 193 to 383: docs/torch-cpu.md.
  auto backend = make_sim_backend("torch-cpu-linear");
  const ReductionShape shape{"linear", softfloat::binary32, 8, 32, 1};
  const std::vector<std::string> expected = {"150-192: sequential", "193-193: blocks(96)",
                                             "194-195: blocks(97)", "196-196: blocks(98)"};
  EXPECT_EQ(classes(**backend, shape, {.first = 150, .last = 196, .every = 4}), expected);
}

}  // namespace
}  // namespace kvsim::gpu
