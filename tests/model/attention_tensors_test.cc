// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/attention_tensors.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/safetensors_writer.h"
#include "softfloat/formats.h"
#include "tests/model/test_file.h"

namespace kvsim {
namespace {

using test::bytes_of;
using test::expect_one_line;

const std::string golden = KVSIM_SOURCE_DIR "/tests/golden/qkv-L15.safetensors";

using Shape = std::vector<std::int64_t>;

/// A file in memory with tensors of the given names, types and shapes, its data counting up.
class Sample {
 public:
  void add(std::string name, Dtype dtype, Shape shape) {
    tensors_.push_back({std::move(name), dtype, std::move(shape), {}});
  }
  Result<AttentionTensors> load() {
    std::string data(4096, '\0');
    for (std::size_t index = 0; index < data.size(); ++index)
      data[index] = static_cast<char>(index);
    std::size_t begin = 0;
    for (Tensor& tensor : tensors_) {
      const auto size = static_cast<std::size_t>(*tensor_bytes(tensor.dtype, tensor.shape));
      tensor.bytes = bytes_of(data).subspan(begin, size);
      begin += size;
    }
    file_ = safetensors_prefix(tensors_).value() + data.substr(0, begin);
    return AttentionTensors::from(SafetensorsFile::parse(bytes_of(file_), "f").value());
  }

 private:
  std::vector<Tensor> tensors_;
  std::string file_;
};

Sample sample(Dtype dtype, Shape q, Shape k, Shape v) {
  Sample result;
  result.add("q", dtype, std::move(q));
  result.add("k", dtype, std::move(k));
  result.add("v", dtype, std::move(v));
  return result;
}

TEST(AttentionTensors, ReadsTheCapture) {
  const auto attention = load_attention(golden);
  ASSERT_TRUE(attention) << attention.error().message;
  EXPECT_EQ(attention->sizes(), (AttentionSizes{9, 3, 256, 256, 64}));
  EXPECT_EQ(attention->format(), softfloat::binary16);
  EXPECT_EQ(attention->dtype(), Dtype::f16);
  EXPECT_EQ(attention->q().size(), 9 * 256 * 64);
  EXPECT_EQ(attention->k().size(), 3 * 256 * 64);

  std::ifstream stream(golden, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  const auto half_at = [&](std::size_t offset) {
    return static_cast<softfloat::Bits>(static_cast<unsigned char>(whole[offset]) |
                                        static_cast<unsigned char>(whole[offset + 1]) << 8);
  };
  constexpr std::size_t data = 8 + 536;
  for (std::int64_t index = 0; index < attention->q().size(); ++index) {
    ASSERT_EQ(attention->q()[index], half_at(data + 98304 + 2 * static_cast<std::size_t>(index)));
  }
  EXPECT_EQ(attention->k()[0], half_at(data));
  EXPECT_EQ(attention->v()[attention->v().size() - 1], half_at(whole.size() - 2));
}

TEST(AttentionTensors, DecodesEveryWidthLittleEndian) {
  struct Case {
    Dtype dtype;
    softfloat::Format format;
    softfloat::Bits second;  // of q, whose bytes count up from 0
  };
  const std::vector<Case> cases = {{Dtype::f64, softfloat::binary64, 0x0f0e0d0c0b0a0908},
                                   {Dtype::f32, softfloat::binary32, 0x07060504},
                                   {Dtype::f16, softfloat::binary16, 0x0302},
                                   {Dtype::bf16, softfloat::bfloat16, 0x0302},
                                   {Dtype::f8_e5m2, softfloat::e5m2, 0x01},
                                   {Dtype::f8_e4m3, softfloat::e4m3, 0x01},
                                   {Dtype::f8_e5m2fnuz, softfloat::e5m2fnuz, 0x01},
                                   {Dtype::f8_e4m3fnuz, softfloat::e4m3fnuz, 0x01}};
  for (const Case& row : cases) {
    Sample file = sample(row.dtype, {2, 1, 3}, {1, 2, 3}, {1, 2, 3});
    const auto attention = file.load();
    ASSERT_TRUE(attention) << attention.error().message;
    EXPECT_EQ(attention->format(), row.format);
    EXPECT_EQ(attention->sizes(), (AttentionSizes{2, 1, 1, 2, 3}));
    EXPECT_EQ(attention->q()[1], row.second);
    std::vector<softfloat::Bits> codes(2);
    attention->q().copy(1, codes);
    EXPECT_EQ(codes[0], row.second);
    EXPECT_EQ(codes[1], attention->q()[2]);
  }
}

TEST(AttentionTensors, StaysValidWhenMoved) {
  auto loaded = load_attention(golden);
  ASSERT_TRUE(loaded);
  const softfloat::Bits first = loaded->q()[5];
  const AttentionTensors moved = std::move(*loaded);
  EXPECT_EQ(moved.q()[5], first);
  EXPECT_EQ(moved.file().path(), golden);
}

void expect_refused(Sample file, const std::string& message) {
  const auto attention = file.load();
  ASSERT_FALSE(attention) << "accepted, though: " << message;
  EXPECT_EQ(attention.error().kind, ErrorKind::usage);
  EXPECT_EQ(attention.error().message, "f: " + message);
  expect_one_line(attention.error());
}

TEST(AttentionTensors, NamesWhatTheFileHoldsWhenATensorIsMissing) {
  const std::string accepted =
      "; accepted: a file with the tensors q [query_heads, query_len, head_dim], k and v "
      "[kv_heads, "
      "kv_len, head_dim]";
  expect_refused({}, "tensor q is missing, the file holds no tensors" + accepted);
  Sample file;
  file.add("q", Dtype::f16, {1, 1, 2});
  file.add("key\n", Dtype::f16, {1, 1, 2});
  expect_refused(file, R"(tensor k is missing, the file holds "q", "key\x0a")" + accepted);
  Sample many;
  for (char letter = 'A'; letter < 'K'; ++letter) many.add({letter}, Dtype::u8, {1});
  expect_refused(
      many, R"(tensor q is missing, the file holds "A", "B", "C", "D", "E", "F", "G", "H" and )"
            "2 more" +
                accepted);
}

TEST(AttentionTensors, RefusesRanksSizesAndTypes) {
  const std::string dtypes =
      "; accepted: F64, F32, F16, BF16, F8_E5M2, F8_E4M3, F8_E5M2FNUZ, F8_E4M3FNUZ";
  const Shape good = {1, 1, 2};
  expect_refused(sample(Dtype::i16, good, good, good), "tensor q has dtype I16" + dtypes);
  expect_refused(sample(Dtype::f8_e8m0, good, good, good), "tensor q has dtype F8_E8M0" + dtypes);
  expect_refused(sample(Dtype::f4, good, good, good), "tensor q has dtype F4" + dtypes);
  expect_refused(
      sample(Dtype::f16, {1, 2}, good, good),
      "tensor q has shape [1, 2]; accepted: 3 sizes, [query_heads, query_len, head_dim]");
  expect_refused(
      sample(Dtype::f16, good, {1, 1, 1, 2}, good),
      "tensor k has shape [1, 1, 1, 2]; accepted: 3 sizes, [kv_heads, kv_len, head_dim]");
  expect_refused(sample(Dtype::f16, good, good, {1, 0, 2}),
                 "tensor v has shape [1, 0, 2]; accepted: [kv_heads, kv_len, head_dim] with every "
                 "size at least 1");
}

TEST(AttentionTensors, RefusesWhatDoesNotFitTogether) {
  const Shape good = {1, 1, 2};
  Sample mixed;
  mixed.add("q", Dtype::f16, good);
  mixed.add("k", Dtype::f16, good);
  mixed.add("v", Dtype::bf16, good);
  expect_refused(mixed,
                 "tensor v has dtype BF16 and q has F16; accepted: one dtype for q, k and v");
  expect_refused(sample(Dtype::f16, good, {1, 2, 2}, {2, 1, 2}),
                 "k has shape [1, 2, 2] and v has [2, 1, 2]; accepted: equal shapes");
  expect_refused(
      sample(Dtype::f16, {1, 1, 4}, good, good),
      "q has head_dim 4 (shape [1, 1, 4]) and k has 2 (shape [1, 1, 2]); accepted: equal");
  expect_refused(sample(Dtype::f16, {3, 1, 2}, {2, 1, 2}, {2, 1, 2}),
                 "q has 3 heads and k has 2; accepted: query heads that are a multiple of the "
                 "key/value heads");
  expect_refused(sample(Dtype::f16, {1, 3, 2}, {1, 2, 2}, {1, 2, 2}),
                 "q has 3 queries for the 2 keys of k; accepted: at most one query per key");
}

TEST(LoadAttention, PassesOnTheErrorsOfTheFile) {
  const auto attention = load_attention("/nothing/here.safetensors");
  ASSERT_FALSE(attention);
  EXPECT_EQ(attention.error().kind, ErrorKind::file);
}

}  // namespace
}  // namespace kvsim
