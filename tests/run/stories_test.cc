// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint.h"
#include "run/model_shape.h"
#include "run/model_weights.h"
#include "sim/decoder/incremental.h"
#include "softfloat/formats.h"

namespace kvsim {
namespace {

// The text that llama2.c's documentation prints for this model, as token ids.
TEST(Stories, GreedyTextIsThatOfLlama2c) {
  const char* shared = std::getenv("KVSIM_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "skipped: no KVSIM_SHARED";
  const std::string folder = std::string(shared) + "/data/stories260K/";
  const auto wanted = nlohmann::json::parse(std::ifstream(folder + "greedy.json"))
                          .at("ids")
                          .get<std::vector<std::int32_t>>();
  const auto checkpoint = load_checkpoint(folder + "stories260K.bin");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const DecoderShape shape = decoder_shape(checkpoint->config()).value();
  for (const std::string_view dispatch : {"binary64", "fp32", "torch-cpu"}) {
    DecoderArmOptions options{
        .dispatch = DispatchChoice::named(dispatch).value(), .attention = {}, .engine = {}};
    options.storage = dispatch == "binary64" ? softfloat::binary64 : softfloat::binary32;
    auto decoder = IncrementalDecoder::make(shape, decoder_weights(*checkpoint).value(), options);
    ASSERT_TRUE(decoder) << decoder.error().message;
    KvCache cache = decoder->new_cache();
    std::int32_t token = 1;  // the beginning of a text
    std::vector<std::int32_t> found;
    while (found.size() < wanted.size()) {
      DecoderPass pass;
      pass.first_row = cache.rows();
      pass.tokens = std::span(&token, 1);
      const auto result = decoder->pass(cache, pass);
      ASSERT_TRUE(result) << result.error().message;
      token = static_cast<std::int32_t>(std::ranges::max_element(result->logits) -
                                        result->logits.begin());
      found.push_back(token);
    }
    EXPECT_EQ(found, wanted) << dispatch;
  }
}

}  // namespace
}  // namespace kvsim
