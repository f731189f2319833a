// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <array>
#include <map>
#include <string>

#include "softfloat/formats.h"
#include "tests/sim/decoder/kept_rows.h"

namespace kvsim {
namespace {

using test::arm;
using test::check_kept_rows;
using test::TinyModel;

// Around every length at which some kernel begins another tile, block, pass, vector or wave.
const std::vector<std::int64_t> lengths{2,  3,   4,   15,  16,  17,  18,  33,  64,  65,  66,  81,
                                        97, 127, 128, 129, 130, 161, 176, 177, 178, 192, 193, 194};

/// Query heads of a group read one K/V head, of the size that Gemma-3 has.
DecoderShape wide_shape() {
  DecoderShape shape = test::full_shape();
  shape.layers = 2;
  shape.has_window = {true, false};
  shape.window = 40;
  shape.query_heads = 8;
  shape.kv_heads = 1;
  shape.head_dim = 256;
  return shape;
}

class KeptRowsEverywhere : public testing::TestWithParam<std::string_view> {};

TEST_P(KeptRowsEverywhere, HaveTheBitsOfAWholePass) {
  std::map<std::string, int> kept;
  const TinyModel tiny(test::full_shape());
  const TinyModel wide(wide_shape());
  for (const softfloat::Format& storage :
       {softfloat::bfloat16, softfloat::binary16, softfloat::binary32}) {
    const std::string name(softfloat::format_name(storage));
    SCOPED_TRACE(name);
    const DecoderArmOptions options = arm(GetParam(), storage);
    const auto decoder = IncrementalDecoder::make(tiny.shape(), tiny.weights(), options);
    ASSERT_TRUE(decoder);
    if (!decoder->keeps_rows(17, 18)) continue;  // no kernels for this storage, or none that keep
    kept[name] = check_kept_rows(tiny, options, lengths);
    kept[name] += check_kept_rows(wide, options, std::array<std::int64_t, 2>{41, 81});
  }
  RecordProperty("kept", testing::PrintToString(kept));
}

INSTANTIATE_TEST_SUITE_P(Dispatch, KeptRowsEverywhere,
                         testing::Values("h100-fa3", "a100-fa2", "v100", "b200-fa4", "mi300-fa2",
                                         "torch-cpu", "llama.cpp-cpu", "batch-invariant", "fp32",
                                         "layercast", "exact", "exact-sums", "binary64"),
                         [](const auto& row) {
                           std::string name(row.param);
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace kvsim
