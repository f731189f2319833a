// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/host_cpu.h"
#include "softfloat/sha256.h"
#include "tests/gpu/torch_fixture.h"
#include "tests/run/decoder_fixture.h"
#ifdef KVSIM_GOLDEN_MODEL
#include "cli/model_places.h"
#include "model/model_store.h"
#endif

/// libtorch's decoder against Hugging Face's transformers, which ran on a CPU like this one
/// (scripts/make_torch_goldens.py): equal bits of every logit and of every hidden state.
namespace kvsim::gpu {
namespace {

/// The folder of a model; empty where this program does not test it: KVSIM_GOLDEN_MODEL is the one
/// that it does, otherwise those of the repository are.
std::string folder_of(const std::string& model) {
#ifdef KVSIM_GOLDEN_MODEL
  if (model != KVSIM_GOLDEN_MODEL) return {};
  const auto folder = find_model(model, model_places());
  EXPECT_TRUE(folder) << folder.error().message;
  return folder ? *folder : std::string();
#else
  const auto* const end = std::end(test::fixture_names);
  if (std::find(std::begin(test::fixture_names), end, model) == end) return {};
  return test::fixture_path(model, "");
#endif
}

/// As the script writes it, of all layers.
std::string digest_of_layers(const std::vector<std::string>& layers) {
  std::string text;
  for (const std::string& layer : layers) text += layer;
  return sha256(std::as_bytes(std::span(text))).substr(0, 16);
}

TEST(TorchDecoderBits, AreThoseOfTransformers) {
  std::string path = KVSIM_SOURCE_DIR "/tests/golden/gpu/transformers-";
  const nlohmann::json golden = test::read_json(path.append(KVSIM_TEST_SETTING).append(".json"));
  if (golden.at("cpu").at("vendor") != host_cpu().vendor ||
      golden.at("cpu").at("features") != host_cpu().features) {
    GTEST_SKIP() << "new CPU key";
  }
  int compared = 0;
  std::map<std::string, std::unique_ptr<Engine>> engines;
  for (const auto& run : golden.at("runs")) {
    const std::string model = run.at("model");
    const std::string folder = folder_of(model);
    if (folder.empty()) continue;
    std::unique_ptr<Engine>& engine = engines[model];
    if (!engine) engine = test::torch_engine(folder, model);
    const auto arm = engine->arm(test::torch_settings(run.at("attention").get<std::string>(),
                                                      run.at("storage").get<std::string>()));
    ASSERT_TRUE(arm) << arm.error().message;
    const auto ids = run.at("ids").get<std::vector<std::int32_t>>();
    for (const auto& way : run.at("ways")) {
      const auto sequence = (*arm)->open(std::ssize(ids), {});
      ASSERT_TRUE(sequence) << sequence.error().message;
      const auto rows = way.at("passes").get<std::vector<std::int64_t>>();
      const auto passes = test::run_way(**sequence, ids, rows, {.layer_digests = true});
      ASSERT_EQ(passes.size(), rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string place = fmt::format("{} {}, pass {} of {}", model, (*arm)->dispatch(), i,
                                              way.at("passes").dump());
        EXPECT_EQ(digest_of_layers(passes[i].digests.layer), way.at("hidden")[i]) << place;
        EXPECT_EQ(digest_of(std::span<const double>(passes[i].logits)), way.at("logits")[i])
            << place;
        ++compared;
      }
    }
  }
  fmt::print("{}: {} passes compared\n", KVSIM_TEST_SETTING, compared);
  EXPECT_GE(compared, 80);
}

}  // namespace
}  // namespace kvsim::gpu
