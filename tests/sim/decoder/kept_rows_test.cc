// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "tests/sim/decoder/kept_rows.h"

#include <gmock/gmock.h>

#include <limits>

namespace kvsim {
namespace {

using softfloat::bfloat16;
using softfloat::binary32;
using test::arm;
using test::check_kept_rows;
using test::compare_rows;
using test::decoder_of;
using test::KeptRows;
using test::pass_from_start;
using test::TinyModel;
using testing::HasSubstr;

// Rows by which a tile of 16 terms, of 64 rows, of 128 keys begins or ends.
const std::vector<std::int64_t> lengths{2, 16, 17, 18, 64, 65, 66, 128, 129, 130};

TEST(KeptRows, HaveTheBitsOfAWholePass) {
  const TinyModel model(test::full_shape());
  // One row is a kernel for vectors. PyTorch's vectors on a CPU have 16 keys.
  EXPECT_EQ(check_kept_rows(model, arm("h100-fa3"), lengths), 9);             // all but 2
  EXPECT_EQ(check_kept_rows(model, arm("torch-cpu", binary32), lengths), 6);  // not 2, 16, 64, 128
  EXPECT_EQ(check_kept_rows(model, arm("fp32"), lengths), 9);
  EXPECT_EQ(check_kept_rows(model, arm("binary64"), std::vector<std::int64_t>{18}), 0);
}

// Where the answer is no, the rows that are there already have other bits.
TEST(KeptRows, AreRefusedWhereTheirBitsChange) {
  const auto rows = [](const TinyModel& model, const DecoderArmOptions& options, std::int64_t n) {
    IncrementalDecoder decoder = decoder_of(model, options);
    return compare_rows(decoder, n);
  };
  const TinyModel tiny(test::tiny_shape());
  // 65 rows: another linear kernel, which does not split K.
  DecoderShape long_sums = test::tiny_shape();
  long_sums.hidden = 512;
  const KeptRows other_linear = rows(TinyModel(long_sums), arm("fp32"), 65);
  EXPECT_FALSE(other_linear.kept || other_linear.equal_rows);
  // 16 keys: a vector more of them goes through PyTorch's vector exponential.
  const KeptRows other_exponential = rows(tiny, arm("torch-cpu", binary32), 16);
  EXPECT_FALSE(other_exponential.kept || other_exponential.equal_rows);
  // 98 rows: the fourth block of 32 queries has two of them instead of one, and adds the values key
  // by key. In bfloat16 one output in some ten thousand has other bits then: there have to be many.
  DecoderShape many_heads = test::tiny_shape();
  many_heads.query_heads = 32;
  many_heads.head_dim = 128;
  many_heads.layers = 4;
  const KeptRows other_values = rows(TinyModel(many_heads), arm("torch-cpu", bfloat16), 98);
  EXPECT_FALSE(other_values.kept || other_values.equal_rows);
  // A tensor whose last elements, fewer than a group of 32, are computed one by one.
  DecoderShape odd = test::tiny_shape();
  odd.ffn = 72;
  const KeptRows other_activation = rows(TinyModel(odd), arm("torch-cpu", binary32), 18);
  EXPECT_FALSE(other_activation.kept);
  EXPECT_TRUE(rows(tiny, arm("torch-cpu", binary32), 18).kept);
  // A planted defect.
  DecoderArmOptions planted = arm("h100-fa3");
  planted.plant = Plant::causal_leak;
  const KeptRows leaked = rows(tiny, planted, 18);
  EXPECT_FALSE(leaked.kept || leaked.equal_rows);
}

TEST(KeptRows, AreRefusedWhereAPassHasMoreThanItsOwnRows) {
  const TinyModel model(test::tiny_shape());
  IncrementalDecoder decoder = decoder_of(model, arm("h100-fa3"));
  KvCache cache = decoder.new_cache();
  ASSERT_TRUE(pass_from_start(decoder, cache, 17, 0));
  const std::vector<std::int32_t> tokens = test::some_tokens(18);
  DecoderPass pass;
  pass.tokens = tokens;
  pass.known_rows = 17;
  pass.launch.batch = 2;
  EXPECT_THAT(decoder.pass(cache, pass).error().message, HasSubstr("known rows; accepted: "));
  EXPECT_EQ(cache.rows(), 0);
  pass.launch.batch = 1;
  EXPECT_THAT(decoder.pass(cache, pass).error().message,
              HasSubstr("17 known rows of 18, 0 of them in the cache"));
  ASSERT_TRUE(pass_from_start(decoder, cache, 17, 0));
  EXPECT_TRUE(decoder.pass(cache, pass));
}

// 0 · ∞ is NaN: an infinite value reaches rows that do not see it.
TEST(KeptRows, AreRefusedBeforeAValueThatIsNotFinite) {
  TinyModel model(test::tiny_shape());
  WeightView& value = model.weights().layers[1].value;
  const std::vector<float> huge(static_cast<std::size_t>(value.rows * value.columns),
                                std::numeric_limits<float>::max());
  value = {huge.data(), binary32, value.rows, value.columns};
  DecoderArmOptions options = arm("fp32");
  IncrementalDecoder decoder = decoder_of(model, options);
  KvCache cache = decoder.new_cache();
  ASSERT_TRUE(pass_from_start(decoder, cache, 17, 0));
  ASSERT_TRUE(decoder.keeps_rows(17, 18));
  const auto refused = pass_from_start(decoder, cache, 18, 17);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("a value of layer 1 that is not finite"));
}

}  // namespace
}  // namespace kvsim
