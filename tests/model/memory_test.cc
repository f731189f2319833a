// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
// The memory that the worst headers make the reader use, counted in the global operator new.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

#include "model/safetensors.h"
#include "tests/model/test_file.h"

namespace {

// The tests here are single-threaded.
std::size_t in_use = 0;
std::size_t peak = 0;

constexpr std::size_t label = alignof(std::max_align_t);  // room for the size, keeps the alignment

}  // namespace

void* operator new(std::size_t size) {
  void* block = std::malloc(size + label);
  if (block == nullptr) throw std::bad_alloc();
  *static_cast<std::size_t*>(block) = size;
  in_use += size;
  peak = std::max(peak, in_use);
  return static_cast<std::byte*>(block) + label;
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  void* begin = static_cast<std::byte*>(block) - label;
  in_use -= *static_cast<std::size_t*>(begin);
  std::free(begin);
}

void operator delete(void* block, std::size_t /*size*/) noexcept { operator delete(block); }

namespace kvsim {
namespace {

using test::bytes_of;
using test::safetensors;

constexpr std::size_t bookkeeping = std::size_t{80} << 20;  // as SafetensorsLimits states

/// Peak of the heap, in bytes, while the file is read. `accepted` is what must come out.
std::size_t peak_of(const std::string& file, bool accepted) {
  const std::size_t before = in_use;
  peak = in_use;
  const auto parsed = SafetensorsFile::parse(bytes_of(file), "f");
  const std::size_t most = peak - before;
  EXPECT_EQ(parsed.has_value(), accepted) << (parsed ? "" : parsed.error().message);
  if (!parsed) test::expect_one_line(parsed.error());
  ::testing::Test::RecordProperty("peak_bytes", std::to_string(most));
  ::testing::Test::RecordProperty("file_bytes", std::to_string(file.size()));
  return most;
}

std::string many_tensors(std::size_t count, std::string_view end) {
  std::string header = "{";
  for (std::size_t index = 0; index < count; ++index) {
    if (index > 0) header += ',';
    header += "\"" + std::to_string(index) +
              R"(":{"dtype":"U8","shape":[0,0,0,0,0,0,0,0],"data_offsets":[0,0]})";
  }
  return header.append(end);
}

TEST(SafetensorsMemory, TheMostTensors) {
  const std::string file = safetensors(many_tensors(SafetensorsLimits::tensors, "}"));
  EXPECT_LT(peak_of(file, true), file.size() + bookkeeping);
}

TEST(SafetensorsMemory, OneTensorTooMany) {
  const std::string file = safetensors(many_tensors(SafetensorsLimits::tensors + 1, "}"));
  EXPECT_LT(peak_of(file, false), file.size() + bookkeeping);
}

TEST(SafetensorsMemory, ManyTensorsBeforeALongGapThatIsNoJson) {
  // In its message the parser spells each line feed with eight bytes, several times over.
  const std::string file =
      safetensors(many_tensors(SafetensorsLimits::tensors,
                               "," + std::string(SafetensorsLimits::text_bytes - 100, '\n') + "x"));
  EXPECT_LT(peak_of(file, false), file.size() + bookkeeping);
}

TEST(SafetensorsMemory, TheMostMetadata) {
  std::string header = R"({"__metadata__":{)";
  for (std::size_t index = 0; index < SafetensorsLimits::metadata_entries; ++index) {
    if (index > 0) header += ',';
    header += "\"" + std::to_string(index) + "\":\"\"";
  }
  const std::string file = safetensors(header + "}}");
  EXPECT_LT(peak_of(file, true), file.size() + bookkeeping);
}

TEST(SafetensorsMemory, AHeaderOfLongTexts) {
  std::string header = R"({"__metadata__":{)";
  for (int index = 0; index < 10; ++index) {
    if (index > 0) header += ',';
    header += "\"" + std::to_string(index) + "\":\"" + std::string(1000000, 'x') + "\"";
  }
  const std::string file = safetensors(header + "}}");
  // Each text is held once, beside a few copies of the one being read.
  EXPECT_LT(peak_of(file, true), file.size() + (std::size_t{8} << 20));
}

TEST(SafetensorsMemory, DeepNesting) {
  const std::string file = safetensors("{\"a\":" + std::string(20000000, '['));
  EXPECT_LT(peak_of(file, false), bookkeeping);
}

TEST(SafetensorsMemory, AHugeShapeAllocatesNothing) {
  const std::string file = safetensors(R"({"a":{"dtype":"F64","shape":[1000000,1000000,1000],)"
                                       R"("data_offsets":[0,8000000000000000000]}})");
  EXPECT_LT(peak_of(file, false), std::size_t{1} << 16);
}

}  // namespace
}  // namespace kvsim
